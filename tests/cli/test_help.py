"""Help fits a screen, says what is shared once, and is there for programs too."""

import json

import pytest

from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.frame.generated import PAGES
from kgroup.cli.frame.lazy import OF_EVERY_COMMAND, SCREEN, walk
from kgroup.cli.frame.shared_options import shared_names
from tests.house.repository import ROOT

COMMANDS = [command.path for command in walk()]


@pytest.mark.parametrize("path", COMMANDS)
def test_a_page_fits_a_screen_and_names_what_is_shared(path, kgroup, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    ran = kgroup(*path.split(), "--help")
    lines = ran.out.splitlines()
    assert ran.code == ExitCode.OK and len(lines) <= SCREEN, len(lines)
    assert max(map(len, lines)) <= 81 or "kgroup " in max(lines, key=len)
    assert OF_EVERY_COMMAND in lines and "--bootstrap-server" not in ran.out.partition("Examples")[0]
    assert "Examples" in ran.out


def test_options_shows_every_shared_option(kgroup):
    ran = kgroup("options", "-o", "json")
    shared = {name.strip("_").replace("_", "-") for name in shared_names()}
    names = {option["name"].lstrip("-") for option in ran.document["data"]["options"]}
    assert names == {"X" if name == "property" else name for name in shared}
    text = kgroup("options").out
    assert all(option["usage"] in text for option in ran.document["data"]["options"])
    page = (ROOT / "man" / "kgroup.1").read_text(encoding="utf-8")
    assert all(option["help"][:20] in page.replace("\\-", "-") for option in ran.document["data"]["options"])


def test_commands_describe_themselves_to_programs(kgroup):
    every = kgroup("commands", "-o", "json").document["data"]["commands"]
    assert [row["command"] for row in every] == COMMANDS
    (lag,) = (row for row in every if row["command"] == "lag")
    (limit,) = (option for option in lag["options"] if option["name"] == "--fail-above")
    assert limit["takes_value"] and not limit["repeatable"] and "300 is records" in limit["help"]
    assert lag["arguments"][0] == {
        "name": "GROUP…",
        "usage": "GROUP…",
        "help": lag["arguments"][0]["help"],
        "required": True,
        "repeatable": True,
    }
    assert lag["schema"] == "kgroup/lag@1" and lag["examples"]


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        (["lag", "--help-json"], ["lag"]),
        (["offsets", "export", "-b", "x:1", "--help-json"], ["offsets export"]),
        (["context", "--help-json"], ["context list", "context use", "context show"]),
        (["--help-json"], COMMANDS),
    ],
)
def test_help_json_is_that_of_the_command(typed, shown, kgroup):
    document = json.loads(kgroup(*typed).out)
    assert [row["command"] for row in document["data"]["commands"]] == shown


def test_an_unknown_command_has_no_description(kgroup):
    assert kgroup("commands", "nope").code == ExitCode.NOT_FOUND
    assert kgroup("nope", "--help-json").code == ExitCode.NOT_FOUND


def test_llms_txt_names_pages_that_exist():
    text = (ROOT / "llms.txt").read_text(encoding="utf-8")
    for name in PAGES:
        assert f"(docs/{name}.md)" in text and (ROOT / "docs" / f"{name}.md").is_file()
