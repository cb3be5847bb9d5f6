"""Random changes: each `undo:` line that a command prints works as it stands, and restores what was."""

from __future__ import annotations

import random
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from kgroup.admin.change.offset_plans import look
from kgroup.admin.change.remove_members import Selection, execute_removal, plan_removal
from kgroup.admin.journal import Journal
from kgroup.admin.topic_records import produce
from kgroup.cli.exit_codes import ExitCode
from kgroup.domain import TopicPartition
from kgroup.protocol.log_records import LogRecord
from kgroup.runtime.cluster import Cluster
from tests.cli.live import Client, served
from tests.own_home import move_in
from tests.ran import Ran, ran

TOPIC, OTHER = "read", "left"
EMPTY, LIVE, COPY, SHARE = "empty", "live", "copy", "share"
Offsets = dict[str, dict[TopicPartition, object]]
Ask = Callable[..., Ran]


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Client:
    move_in(monkeypatch, tmp_path)
    config = {"group.initial.rebalance.delay.ms": "0"}
    with served(Cluster(config=config, offsets_partitions=2)) as bootstrap:
        client = Client(bootstrap)
        for topic in (TOPIC, OTHER):
            client.create_topic(topic, 2)
            produce(client.admin, topic, [LogRecord(None, b"x", (), 0)] * 9, 0)
        yield client
        client.close()


@pytest.fixture
def ask(client: Client, capsys: pytest.CaptureFixture[str]) -> Ask:
    return lambda *argv: ran(capsys, *argv, "-b", client.bootstrap)


def offsets(client: Client) -> Offsets:
    """Every committed offset; a group without any counts as one that is not there."""
    now = look(client.admin, [EMPTY, LIVE, COPY, SHARE], [SHARE])
    return {name: dict(group.committed) for name, group in now.items() if group.committed}


def undo_line(told: Ran) -> str:
    (line,) = [line for line in (told.out + told.err).splitlines() if line.startswith("undo")]
    return line


def undone(ask: Ask, line: str) -> Ran:
    _, *words = shlex.split(line[line.index("kgroup ") :])
    return ask(*(word for word in words if "bootstrap" not in word), "--execute", "--yes")


CHANGES = (
    f"reset-offsets {EMPTY} --topic {TOPIC} --to-offset {{n}}",
    f"reset-offsets {COPY} --topic {TOPIC}:0 --to-offset {{n}} --create",
    f"reset-offsets {SHARE} --topic {TOPIC} --to-offset {{n}} --create --share",
    f"reset-offsets {SHARE} --topic {TOPIC}:0 --to-offset {{n}} --create --share",
    f"offsets clone {EMPTY} {COPY}",
    f"offsets delete {EMPTY} --topic {TOPIC}",
    f"offsets delete {LIVE} --topic {OTHER}",
    f"offsets delete {SHARE} --all-topics",
    f"delete {EMPTY}",
    f"delete {EMPTY} {COPY}",
    f"delete {SHARE}",
)


FORMATS = ((), ("--no-headers",), ("-o", "csv"), ("-o", "json"), ("-o", "name"))
"""Where stdout has rows or a document only, the line stands on stderr."""


@pytest.mark.parametrize("seed", range(3))
def test_each_line_that_is_printed_works_at_that_moment(client: Client, ask: Ask, seed: int) -> None:
    chance = random.Random(seed)
    client.commit(LIVE, OTHER, {0: 3})
    client.classic_group(LIVE, TOPIC, {"i": [0]})
    client.commit(EMPTY, TOPIC, {0: 4, 1: 0})
    printed = 0
    for change in chance.choices(CHANGES, k=14):
        before, entries = offsets(client), len(Journal.default().entries())
        form = chance.choice(FORMATS)
        told = ask(*change.format(n=chance.randrange(10)).split(), "--execute", "--yes", *form)
        assert not form or "undo" not in told.out.replace('"undo', "")
        if len(Journal.default().entries()) == entries:
            assert offsets(client) == before
            continue
        line = undo_line(told)
        if line.startswith("undo: kgroup"):
            printed += 1
            if chance.random() < 0.6:
                back = undone(ask, line)
                assert (back.code, offsets(client)) == (ExitCode.OK, before), (change, line, back.err)
        elif "once no member is left" in line:
            assert undone(ask, line).code == ExitCode.REFUSED
            client.commit(EMPTY, TOPIC, {0: 4})
            break
    assert printed > 1


def test_an_undo_that_a_living_group_refuses_says_when_it_works(client: Client, ask: Ask) -> None:
    client.commit(LIVE, OTHER, {0: 3})
    client.classic_group(LIVE, TOPIC, {"i": [0]})
    before = offsets(client)
    plan = ask("offsets", "delete", LIVE, "--topic", OTHER, "-o", "json")
    assert [(item["lag"], item["effect"]) for item in plan.data["items"]] == [(6, "")]
    told = ask("offsets", "delete", LIVE, "--topic", OTHER)
    assert f"! {LIVE}: 6 records unread ({OTHER}:0 6)" in told.out
    line = undo_line(ask("offsets", "delete", LIVE, "--topic", OTHER, "--execute"))
    assert line.startswith(f"undo, once no member is left in {LIVE}: kgroup reset-offsets {LIVE} --undo ")
    refused = undone(ask, line)
    assert refused.code == ExitCode.REFUSED
    execute_removal(client.admin, plan_removal(client.admin, LIVE, Selection(all=True)))
    assert (undone(ask, line).code, offsets(client)) == (ExitCode.OK, before)


def test_a_plan_shows_what_a_deletion_leaves_unread(client: Client, ask: Ask) -> None:
    client.commit(EMPTY, TOPIC, {0: 4, 1: 0})
    client.commit(COPY, TOPIC, {0: 9})
    client.commit(SHARE, TOPIC, {0: 11})
    data = ask("delete", EMPTY, COPY, SHARE, "-o", "json").data
    assert [[(row["partition"], row["lag"]) for row in item["unread"]] for item in data["items"]] == [
        [(0, 5), (1, 0)],
        [(0, 0)],
        [(0, None)],
    ]
    told = ask("delete", EMPTY, COPY, SHARE)
    assert f"deleted with all its offsets: 5 records unread ({TOPIC}:0 5)" in told.out
    assert "deleted with all its offsets: nothing is unread" in told.out
    assert f"unread records unknown for {TOPIC}:0" in told.out
    assert "it lies beyond the end of the log, 9" in told.out


def test_the_undo_of_a_deleted_share_group_says_how_many_records_come_again(client: Client, ask: Ask) -> None:
    """Its start offsets are as they were; what was done beyond them is not."""
    argv = ("reset-offsets", SHARE, "--topic", TOPIC, "--to-offset", "2", "--create", "--share")
    assert ask(*argv, "--execute").code == 0
    journal = Journal.default()
    assert ask("delete", SHARE, "--execute", "--yes").code == 0
    (line,) = [x for x in ask("reset-offsets", "--undo", "LAST").out.splitlines() if x.startswith("! ")]
    assert line.startswith(f"! {SHARE} is a share group: j-0002 forgot its delivery counts")
    text = journal.path.read_text()
    assert f'"done_beyond": {{"{SHARE}": 0}}' in text
    for written, told in (("5", "delivered again (up to 5)"), ("null", "(how many is not known)")):
        journal.path.write_text(text.replace(f'"{SHARE}": 0}}', f'"{SHARE}": {written}}}'))
        plan = ask("reset-offsets", "--undo", "LAST")
        assert told in plan.out
        assert "the start offset as it was" in plan.out
