"""No command that only asks makes an embedded cluster: a folder that was typed wrong is exit code 2.

Every command is walked: those of MAKES make a cluster by what they do, all others leave the folder as it is.
"""

import os
from pathlib import Path

import pytest
from typer import Context

from kgroup.cli.env.config import default_local_directory
from kgroup.cli.frame.lazy import CONTEXT_SETTINGS, KgroupCommand, walk
from kgroup.runtime.cluster import Cluster
from tests.own_home import move_in
from tests.ran import ran

USAGE = 2
MAKES = {"cluster create-topic", "cluster user add", "serve", "demo"}
OFFLINE = (
    {
        "docs",
        "options",
        "commands",
        "explain",
        "schema",
        "completion",
        "simulate",
        # Its tools are other commands.
        "mcp",
        "config show",
        "journal list",
        "journal show",
    }
    | {f"context {name}" for name in ("list", "use", "show")}
    # Spark is not started for this: `run` reads its folder by the same function as the others.
    | {f"pipeline {name}" for name in ("run", "query", "sql", "events", "plot", "vacuum", "package")}
    | {"offsets-topic decode"}
)
NEEDS = {
    "wait": ("--for", "stable", "--stop-after", "1s"),
    "watch": ("--stop-after", "1s"),
    "describe": ("g",),
    "delete": ("g",),
    "doctor": ("g",),
    "replay-log": ("g",),
    "reset-offsets": ("--all-topics", "--to-earliest"),
    "remove-members": ("--all",),
    "offsets delete": ("--all-topics",),
    "cluster acl add": ("--principal", "User:a", "--operation", "Read", "--topic", "t"),
    "cluster acl remove": ("--topic", "t"),
    "config set": ("consumer.session.timeout.ms=50000",),
    "member run": ("--topic", "t"),
    "member register": ("--instance-id", "a"),
    "member unregister": ("--instance-id", "a"),
    "capture": ("--out", "out", "--once"),
    "upgrade plan": ("g",),
    "upgrade rehearse": ("g",),
    "upgrade execute": ("--yes",),
}
"""What a command needs beside its arguments to get as far as the cluster."""


def _typed(command: KgroupCommand, folder: Path) -> list[str]:
    context = Context(command, info_name=command.name, **CONTEXT_SETTINGS)
    files = {"file": "offsets.csv", "waves": "waves.yaml"}
    words = [
        str(folder / files[parameter.name]) if parameter.name in files else f"g-{parameter.name}"
        for parameter in command.get_params(context)
        if parameter.param_type_name == "argument" and parameter.required
    ]
    return [*command.path.split(), *words, *NEEDS.get(command.path, ())]


READS = [command for command in walk() if command.path not in MAKES | OFFLINE]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    move_in(monkeypatch, tmp_path)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    (tmp_path / "offsets.csv").write_text("g,orders,0,1\n")
    (tmp_path / "waves.yaml").write_text("waves: [{groups: [g]}]\n")
    return tmp_path


@pytest.mark.parametrize("there", ["missing", "empty", "another", "file", "in a file"])
@pytest.mark.parametrize("command", READS, ids=lambda command: command.path)
def test_what_is_no_cluster_stays_none(
    command: KgroupCommand, there: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path("typo")
    if there in ("empty", "another"):
        folder.mkdir()
        if there == "another":
            (folder / "notes.txt").write_text("mine")
    elif there != "missing":
        folder.write_text("mine")
    before = sorted(Path().rglob("*"))
    told = ran(capsys, *_typed(command, here), "--local", "./typo" if there != "in a file" else "./typo/in")
    assert told.code == USAGE, told.err
    assert "typo" in told.err and "cluster" in told.err
    assert sorted(Path().rglob("*")) == before


@pytest.mark.parametrize("command", READS, ids=lambda command: command.path)
def test_the_default_folder_is_not_made_either(
    command: KgroupCommand, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = ran(capsys, *_typed(command, here), "--local")
    assert told.code == USAGE, told.err
    assert "so no embedded cluster" in told.err
    assert not default_local_directory().exists()


@pytest.mark.parametrize(
    "argv", [("list",), ("replay-log",), ("wait", "--for", "stable")], ids=lambda a: a[0]
)
def test_a_folder_without_its_slash(
    argv: tuple[str, ...], here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was taken for a pattern, and the default cluster made and asked."""
    told = ran(capsys, *argv, "--local", "typo")
    assert (told.code, "did you mean --local ./typo?" in told.err) == (USAGE, True), told.err
    Cluster(Path("typo")).close()
    Cluster(default_local_directory()).close()
    told = ran(capsys, *argv, "--local", "typo")
    assert (told.code, "did you mean --local ./typo?" in told.err) == (USAGE, True), told.err


def test_a_folder_that_is_nearly_one_of_those_there(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Cluster(Path("orders data")).close()
    told = ran(capsys, "list", "--local", "./order data")
    assert (told.code, "did you mean --local './orders data'?" in told.err) == (USAGE, True), told.err
    assert ran(capsys, "list", "--local", "./orders data").code == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every folder")
def test_a_folder_without_rights(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("typo").mkdir(mode=0)
    told = ran(capsys, "list", "--local", "./typo")
    assert (told.code, "Permission denied" in told.err) == (USAGE, True), told.err


def test_what_makes_a_cluster_makes_it(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ran(capsys, "cluster", "create-topic", "t", "--local", "./new").code == 0
    assert ran(capsys, "list", "--local", "./new").code == 0
