"""Every command has help, a man page, examples that parse, and a schema; generated files are up to date."""

import re
import shlex

import pytest
from typer.core import TyperGroup

from kgroup.admin.rights.needs import COMMANDS as RIGHTS
from kgroup.admin.rights.needs import WITHOUT_CLUSTER
from kgroup.admin.shell import items
from kgroup.cli.exit_codes import MEANINGS
from kgroup.cli.frame.generated import files, man_name
from kgroup.cli.frame.lazy import load, walk
from kgroup.cli.frame.registry import COMMANDS, PANELS
from kgroup.cli.frame.tree import expand_local, root
from kgroup.cli.schemas import commands, schema_for
from tests.house.repository import ROOT

ALL = walk()
each_command = pytest.mark.parametrize("command", ALL, ids=[c.path for c in ALL])


def test_generated_files_are_those_in_the_repository():
    """Run `python -m kgroup.cli.frame.generated` after changing a command."""
    wanted = files()
    for name, text in wanted.items():
        assert (ROOT / name).read_text(encoding="utf-8") == text, name
    folders = ("man", "completions")
    there = {f"{folder}/{p.name}" for folder in folders for p in (ROOT / folder).iterdir()}
    assert there | {"llms.txt", "examples/record/config.schema.json"} == set(wanted)


@each_command
def test_has_help(command):
    assert command.help and command.help.split("\n")[0].endswith(".")
    context = command.make_context(command.path, [], resilient_parsing=True)
    silent = [p.name for p in command.get_params(context) if not getattr(p, "help", None)]
    assert silent == []


@each_command
def test_help_doubles_no_backslash(command):
    """It would be typed as it stands."""
    texts = [command.help or "", *(getattr(p, "help", None) or "" for p in command.params)]
    assert [text for text in texts if "\\\\" in text] == []


def test_a_comma_in_an_id_is_typed_as_help_says():
    (text,) = {p.help for c in ALL for p in c.params if "comma in an id" in (getattr(p, "help", None) or "")}
    typed = re.search(r"\('(.*)' is a comma in an id\)", text)[1]
    assert items(f"a{typed}b,c") == ["a,b", "c"]


@each_command
def test_has_a_man_page(command):
    assert (ROOT / "man" / f"{man_name(command.path)}.1").is_file()


@each_command
def test_has_examples_that_parse(command):
    assert command.examples
    for line, comment in command.examples:
        assert comment
        (argv,) = (
            words[1:]
            for part in re.split(r"\s(?:[|>]|>>|&&)\s", line)
            if (words := shlex.split(part))[0] == "kgroup"
        )
        depth = len(command.path.split())
        assert argv[:depth] == command.path.split(), line
        command.make_context(command.path, expand_local(argv[depth:]))


@each_command
def test_examples_fit_80_columns(command):
    assert [line for line, comment in command.examples if max(len(line) + 2, len(comment) + 4) > 80] == []


def test_words_that_help_lists_are_completed():
    """`completion <TAB>` offered nothing, and its help had the three words."""
    listed = re.compile(r"[a-z-]+(\|[a-z-]+)+")
    for command in walk():
        for parameter in command.params:
            if listed.fullmatch(parameter.metavar or ""):
                words = [
                    item.value
                    for item in parameter.shell_complete(
                        command.make_context("x", [], resilient_parsing=True), ""
                    )
                ]
                assert set(parameter.metavar.split("|")) <= set(words), f"{command.path} {parameter.name}"


def test_summaries_of_subcommands_are_whole():
    """Cut ones end in three dots."""
    for entry in COMMANDS.values():
        group = load(entry)
        if isinstance(group, TyperGroup):
            context = group.make_context(entry.name, [], resilient_parsing=True)
            told = " ".join(group.get_help(context).split())
            assert all((sub.help or "").partition("\n")[0] in told for sub in group.commands.values()), entry


@each_command
def test_has_a_schema_when_it_prints_json(command):
    assert (schema_for(command.path) is not None) == command.has_json


def test_no_schema_without_a_command():
    assert set(commands()) == {c.path for c in ALL if c.has_json}


def test_the_registry_and_the_commands_agree():
    for entry in COMMANDS.values():
        assert entry.panel in PANELS
        assert entry.help.endswith(".") and len(entry.help) < 80
        assert load(entry).name == entry.name
    assert set(root().list_commands(None)) == set(COMMANDS)


def test_every_command_has_its_rights_or_needs_none():
    """`doctor --rights` and docs/rights.md know every command, and no other."""
    told = {" ".join(word for word in name.split() if not word.startswith("--")) for name in RIGHTS}
    commands = {command.path for command in walk()}
    assert told | WITHOUT_CLUSTER == commands
    assert not told & WITHOUT_CLUSTER


def test_exit_codes_are_documented():
    page = (ROOT / "docs" / "exit-codes.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \| (.+) \|$", page, re.MULTILINE)
    assert rows == [(str(int(code)), code.name, text) for code, text in MEANINGS.items()]
