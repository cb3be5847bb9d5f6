"""Names with line feeds, escape sequences and bidi marks: in no view do they make a line of their own."""

from __future__ import annotations

import csv
import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kgroup.cli.env.invocation import Env, OutputOptions
from kgroup.cli.frame.tree import run
from kgroup.cli.output.result import print_csv
from kgroup.cli.output.tables import Column, Table
from kgroup.runtime.cluster import Cluster
from tests.cli.conftest import Kgroup, Ran
from tests.cli.live import Client, served

FORGED = "orders   classic   Stable: forged"
GROUP = f"evil\n{FORGED}\r\x1bM\u202e"
MEMBER = f"i\n{FORGED}"
METADATA = f"m\n{FORGED}"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A live group, an empty one and one to delete, their names, members and clients all forged."""
    settings = {"group.initial.rebalance.delay.ms": "0"}
    with served(Cluster(config=settings, offsets_partitions=2)) as bootstrap:
        client = Client(bootstrap)
        client.create_topic("orders", 2)
        client.commit(GROUP, "orders", {0: 0})
        client.classic_group(GROUP, "orders", {MEMBER: [0, 1]})
        client.commit(f"{GROUP}2", "orders", {0: 0})
        client.commit(f"{GROUP}3", "orders", {0: 0})
        yield client
        client.close()


def assert_no_line_is_forged(ran: Ran, *, named: bool = True) -> None:
    assert "Traceback" not in ran.err
    for line in (*ran.out.split("\n"), *ran.err.split("\n")):
        assert not line.lstrip(" └→!·").startswith(FORGED), line
        assert line.isprintable(), line
    assert not named or FORGED in ran.out + ran.err


NOBODY = f"{GROUP}nobody"
VIEWS = (
    (("list",), 0),
    (("list", "-o", "wide"), 0),
    (("list", "-o", "name"), 0),
    (("describe", GROUP), 0),
    (("describe", GROUP, "-o", "wide"), 0),
    (("describe", NOBODY), 3),
    (("lag", GROUP), 0),
    (("lag", GROUP, "--time", "--by-topic"), 0),
    (("lag", GROUP, f"{GROUP}2", "--fail-above", "0"), None),
    (("wait", GROUP, "--for", "stable"), 0),
    (("wait", GROUP, "--for", "empty", "--stop-after", "1ms"), 7),
    (("watch", GROUP, "--until", "stable"), 0),
    (("watch", NOBODY, "--until", "stable", "--stop-after", "1ms"), None),
    (("doctor", GROUP, f"{GROUP}2"), None),
    (("coordinator", GROUP), 0),
    (("coordinator", GROUP, "-o", "wide"), 0),
    (("remove-members", GROUP, "--all"), 0),
    (("remove-members", GROUP, "--instance-id", f"no{MEMBER}"), 3),
    (("reset-offsets", GROUP, "--topic", "orders", "--to-latest"), 4),
    (("reset-offsets", f"{GROUP}2", "--topic", "orders", "--to-latest"), 0),
    (("delete", GROUP), 4),
    (("delete", f"{GROUP}2"), 0),
    (("delete", NOBODY), 3),
    (("offsets", "export", GROUP, f"{GROUP}2"), 0),
    (("offsets", "export", NOBODY), 3),
    (("offsets", "clone", f"{GROUP}2", NOBODY), 0),
    (("offsets", "delete", f"{GROUP}2", "--all-topics"), 0),
    (("upgrade", "plan", GROUP), None),
    (("upgrade", "execute", GROUP, "--no-watch"), None),
    (("upgrade", "rehearse", GROUP), None),
    (("downgrade", "plan", GROUP), None),
    (("replay-log",), 0),
    (("replay-log", "--raw"), 0),
    (("replay-log", "--at", "9999999"), 0),
    (("replay-log", "--verify"), None),
    (("replay-log", NOBODY), 3),
    (("blame", GROUP), 0),
    (("blame", NOBODY), 3),
    (("offsets-topic", "stats"), 0),
    (("offsets-topic", "top"), 0),
    (("explain", GROUP), 3),
    (("describe", GROUP, "--columns", FORGED), 2),
)


@pytest.mark.parametrize(("argv", "code"), VIEWS, ids=[argv[0] for argv, _ in VIEWS])
def test_no_name_makes_a_line_of_its_own(
    hostile: Client, kgroup: Kgroup, argv: tuple[str, ...], code: int | None
) -> None:
    ran = kgroup(*argv, "-b", hostile.bootstrap)
    assert code is None or ran.code == code, ran.err
    assert_no_line_is_forged(ran)


def test_nor_does_it_in_what_is_told_after_a_change(hostile: Client, kgroup: Kgroup, tmp_path: Path) -> None:
    name, where = f"{GROUP}3", ("-b", hostile.bootstrap)
    for argv in (
        ("reset-offsets", name, "--topic", "orders", "--to-offset", "0", "--execute", "--reason", METADATA),
        ("journal", "list"),
        ("journal", "show", "LAST"),
        ("delete", name, "--export", str(tmp_path / "kept.json"), "--execute", "--yes"),
        ("journal", "list", "-o", "wide"),
        ("journal", "show", "LAST"),
    ):
        ran = kgroup(*argv, *(() if argv[0] == "journal" else where))
        assert ran.code == 0, ran.err
        assert_no_line_is_forged(ran, named=argv[0] != "reset-offsets")


def test_nor_does_it_in_the_question_before_a_change(hostile: Client, tmp_path: Path) -> None:
    """On a terminal, which asks; the answer is no."""
    import pty

    main, side = pty.openpty()
    argv = [sys.executable, "-m", "kgroup.cli.app", "remove-members", GROUP, "--all", "--execute"]
    process = subprocess.Popen([*argv, "-b", hostile.bootstrap], stdin=side, stdout=side, stderr=side)
    os.close(side)
    os.write(main, b"n\n")
    said = b""
    while piece := _read(main):
        said += piece
    assert process.wait(300) == 4
    os.close(main)
    text = said.decode().replace("\r\n", "\n")
    assert "[y/N]" in text and FORGED in text
    assert not any(line.startswith(FORGED) for line in text.split("\n"))


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except OSError:
        return b""


def test_an_error_line_holds_what_it_quotes(capsys: pytest.CaptureFixture[str]) -> None:
    """Words of a command line that nobody understood, from a script that took them from a listing."""
    for argv in ((NOBODY,), ("list", f"--{NOBODY}"), ("config", "set", GROUP, NOBODY)):
        assert run(argv) != 0
        told = capsys.readouterr()
        assert_no_line_is_forged(Ran(1, told.out, told.err))


FORMULAS = ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "a\x1b[2J", "a\u202eb", "'plain", "orders")


def printed_as(capsys: pytest.CaptureFixture[str], **how: bool) -> list[str]:
    env = Env("list", {}, (), {}, OutputOptions(format="csv", **how))
    print_csv(env, Table((Column("name"), Column("n")), [{"name": name, "n": -1} for name in FORMULAS]))
    rows = list(csv.reader(io.StringIO(capsys.readouterr().out, newline="")))
    assert {row[1] for row in rows[1:]} == {"-1"}
    return [row[0] for row in rows[1:]]


def test_csv_for_programs_has_every_name_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed_as(capsys) == list(FORMULAS)


def test_csv_for_spreadsheets_has_no_formula_and_no_control_character(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = printed_as(capsys, for_spreadsheets=True)
    assert shown[:4] == ["'=1+1", "'+1", "'-1", "'@SUM(A1)"]
    assert shown[4:] == [r"\t=1", r"\r=1", r"a\x1b[2J", r"a\u202eb", "'plain", "orders"]
