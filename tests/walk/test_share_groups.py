"""Every command that takes groups, on share groups (KIP-932), on brokers that report their offsets and not.

Where start offsets are reported, commands read and change them as committed offsets. Where no broker reports
them, what acts on a group refuses and sends nothing, and what reads it says what is not known, and never 0,
none or healthy. A row of ROWS, or a reason in EXCUSED, is due for every command that takes groups.
"""

import time
from pathlib import Path

import pytest
from typer import Context

from kgroup.admin.change.delete import delete_groups
from kgroup.admin.discovery import ClusterView
from kgroup.admin.journal import Journal
from kgroup.cli.frame.lazy import CONTEXT_SETTINGS, walk
from kgroup.protocol.batches import encode_batch
from kgroup.protocol.log_records import LogRecord
from kgroup.protocol.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from kgroup.protocol.messages.delete_groups import DeleteGroupsRequest
from kgroup.protocol.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from kgroup.protocol.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequest
from kgroup.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from kgroup.protocol.messages.leave_group import LeaveGroupRequest
from kgroup.protocol.messages.offset_commit import OffsetCommitRequest
from kgroup.protocol.messages.offset_delete import OffsetDeleteRequest
from tests.unit.admin.groups import share_group
from tests.walk.test_two_rules import BAD, OK, PARTIAL, REFUSED, nothing_unknown_is_shown_as_zero
from tests.walk.world import IDLE, World, healthy

LIVE, EMPTY = "g-share", "e-share"
OF_OTHER_TYPES = (LeaveGroupRequest, OffsetCommitRequest, OffsetDeleteRequest)
CHANGES = (
    *OF_OTHER_TYPES,
    DeleteGroupsRequest,
    AlterShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequest,
)
FAILED, LATE = 1, 7

ROWS: dict[str, tuple[tuple[str, int, int], ...]] = {
    "list": (("--topic pay", OK, PARTIAL), ("e-*", OK, OK)),
    "describe": (
        (LIVE, OK, PARTIAL),
        (EMPTY, OK, PARTIAL),
        ("g-*", OK, PARTIAL),
        ("--all-groups", OK, PARTIAL),
    ),
    "lag": (
        (LIVE, OK, PARTIAL),
        (EMPTY, OK, PARTIAL),
        (f"{EMPTY} --time", OK, PARTIAL),
        (f"{EMPTY} --fail-above 1000", OK, PARTIAL),
        (f"{EMPTY} --fail-above 100", BAD, PARTIAL),
        # One of its partitions has no start offset.
        (f"{LIVE} --fail-above 1000", BAD, PARTIAL),
        ("g-* --fail-above 1000", BAD, PARTIAL),
    ),
    "watch": (
        (f"{LIVE} --stop-after 2s", OK, PARTIAL),
        (f"{EMPTY} --until lag=0 --stop-after 2s", LATE, PARTIAL),
        # Who is in it is told.
        (f"{EMPTY} --until empty --stop-after 2s", OK, OK),
    ),
    "wait": (
        (f"{LIVE} --for lag=0 --stop-after 2s", LATE, PARTIAL),
        (f"{EMPTY} --for lag=0 --stop-after 2s", LATE, PARTIAL),
        (f"{EMPTY} --for empty --stop-after 2s", OK, OK),
        (f"{LIVE} --for empty --stop-after 2s", LATE, LATE),
    ),
    # One partition of the first has no start offset, so its lag is unknown.
    "doctor": ((LIVE, PARTIAL, PARTIAL), (EMPTY, OK, PARTIAL), ("g-*", PARTIAL, PARTIAL)),
    "coordinator": ((LIVE, OK, OK),),
    "remove-members": ((f"{LIVE} --all --execute --yes", REFUSED, REFUSED),),
    "reset-offsets": (
        (f"{EMPTY} --all-topics --to-earliest", OK, FAILED),
        (f"{EMPTY} --topic orders --to-earliest --execute --yes", OK, FAILED),
        (f"{LIVE} --topic orders --to-earliest --execute --yes", REFUSED, FAILED),
        (f"{IDLE} --to-group {EMPTY} --topic orders", OK, FAILED),
    ),
    "offsets export": ((LIVE, OK, FAILED), (EMPTY, OK, FAILED), ("g-*", OK, PARTIAL)),
    "offsets delete": (
        (f"{EMPTY} --all-topics", OK, FAILED),
        (f"{EMPTY} --topic orders --execute --yes", OK, FAILED),
        # Kafka would delete those of the other partitions too.
        (f"{EMPTY} --topic orders:0 --execute --yes", REFUSED, FAILED),
        (f"{LIVE} --topic orders --execute --yes", REFUSED, FAILED),
    ),
    "offsets clone": (
        (f"{EMPTY} {IDLE}", OK, FAILED),
        (f"{IDLE} {EMPTY} --execute --yes", OK, FAILED),
        (f"{EMPTY} new-one --execute --yes", OK, FAILED),
    ),
    "delete": (
        (EMPTY, OK, FAILED),
        (f"{EMPTY} --execute --yes", OK, FAILED),
        (f"{LIVE} --execute --yes", REFUSED, REFUSED),
        ("e-* --execute --yes", OK, FAILED),
    ),
    **{
        f"{way} {verb}": ((EMPTY, REFUSED, REFUSED), (LIVE, REFUSED, REFUSED))
        for way, verbs in (
            ("upgrade", ("plan", "execute", "watch", "rehearse")),
            ("downgrade", ("plan", "execute", "watch")),
        )
        for verb in verbs
    },
    # The log of this world has no records, so the group it has differs from what the log shows: nothing.
    "replay-log": ((f"{EMPTY} --verify", BAD, PARTIAL),),
}
EXCUSED = {
    "reads the log only, played by tests/cli/test_replay_log_command.py": {"blame"},
    "reads the journal or tables, not a cluster": {"journal list", "pipeline plot"},
    "settings of a group need no group": {"config get", "config set"},
    "a broker of Kafka's knows no registered ids": {"member register", "member unregister"},
    "joins by the name it is given": {"member run"},
    "names topics": {"cluster topics"},
}
TAKES_GROUPS = {"group", "groups", "group_id", "glob", "source", "target"}


@pytest.fixture
def world() -> World:
    """Ten records of the empty group wait from offset 30 of orders-0 on, which ends at 100: 60 are done."""
    made = healthy()
    made.groups.add(share_group(LIVE, "orders:0,1,2,3"), share_group(EMPTY))
    made.groups.started = {
        LIVE: {"orders:0": (40, 60), "orders:1": (-1, None), "orders:2": (100, 0), "orders:3": (90, 5)},
        EMPTY: {"orders:0": (30, 10), "orders:1": (0, 100)},
    }
    return made


@pytest.fixture
def old(world: World) -> World:
    """Brokers that report members of share groups, and not their offsets."""
    world.fake.served |= {90: None, 91: None, 92: None}
    return world


def test_every_command_that_takes_groups_has_a_row_or_a_reason() -> None:
    takes = set()
    for command in walk():
        context = Context(command, info_name=command.name, **CONTEXT_SETTINGS)
        names = {p.name for p in command.get_params(context) if p.param_type_name == "argument"}
        # `pipeline package` and `run` have a target and sources that are no groups.
        if names & TAKES_GROUPS and command.path != "pipeline package":
            takes.add(command.path)
    assert takes == ROWS.keys() | set().union(*EXCUSED.values())


LINES = [(f"{path} {words}", *codes) for path, rows in ROWS.items() for words, *codes in rows]


@pytest.mark.parametrize(("line", "code"), [(line, code) for line, code, _ in LINES])
def test_on_a_share_group(ask, world: World, line: str, code: int) -> None:  # type: ignore[no-untyped-def]
    told = ask(world, *line.split())
    assert told.code == code, told.err
    nothing_unknown_is_shown_as_zero(told.document)
    sent = [message for _, message, _ in world.fake.sent if isinstance(message, CHANGES)]
    assert not sent or (code == OK and "--execute" in line)
    if IDLE not in line:
        assert not [message for message in sent if isinstance(message, OF_OTHER_TYPES)]


@pytest.mark.parametrize(("line", "code"), [(line, code) for line, _, code in LINES])
def test_where_no_broker_reports_its_offsets(ask, old: World, line: str, code: int) -> None:  # type: ignore[no-untyped-def]
    told = ask(old, *line.split())
    assert told.code == code, told.err
    assert [message for _, message, _ in old.fake.sent if isinstance(message, CHANGES)] == []
    nothing_unknown_is_shown_as_zero(told.document)
    for group in (told.data or {}).get("groups", ()):
        if group["group_id"] in (LIVE, EMPTY):
            assert group.get("total_lag") is None
            assert group.get("healthy") is not True


def test_partitions_are_not_counted(ask, old: World) -> None:  # type: ignore[no-untyped-def]
    told = ask(old, "describe", EMPTY, "-o", "table")
    assert "partitions not known · lag unknown" in told.out


def test_what_the_broker_reports_is_described(ask, world: World) -> None:  # type: ignore[no-untyped-def]
    (group,) = ask(world, "describe", LIVE).data["groups"]
    rows = [(row["partition"], row["committed_offset"], row["lag"]) for row in group["offsets"]]
    # The lag is the broker's: of orders-3 five records beyond the start offset are done.
    assert rows == [(0, 40, 60), (1, None, None), (2, 100, 0), (3, 90, 5)]
    assert "no start offset is reported" in group["offsets"][1]["reason"]
    assert (group["total_lag"], group["lag_at_least"], group["unknown_partitions"]) == (None, 65, 1)
    assert [row["member_id"] for row in group["offsets"]] == [None] * 4


def test_a_start_offset_is_not_called_unset_where_its_store_has_no_leader(ask, world: World) -> None:  # type: ignore[no-untyped-def]
    world.fake.topics["__share_group_state"] = 2
    world.fake.leaders["__share_group_state"] = {1: -1}
    told = ask(world, "describe", LIVE)
    assert told.code == PARTIAL
    assert "start offsets may be stored and not readable: __share_group_state 1 has no leader" in told.err


def test_an_error_of_one_partition_is_no_start_offset_of_zero(ask, world: World) -> None:  # type: ignore[no-untyped-def]
    world.groups.started[EMPTY]["orders:1"] = (0, -5)
    told = ask(world, "describe", EMPTY)
    assert told.code == PARTIAL
    (group,) = told.data["groups"]
    assert group["offsets"][1]["committed_offset"] is None
    assert (group["total_lag"], group["lag_at_least"]) == (None, 10)
    assert ask(world, "delete", EMPTY, "--execute", "--yes").code == LATE
    assert world.fake.requests(DeleteGroupsRequest) == []


def test_the_age_of_the_oldest_record_has_bounds_where_some_are_done(ask, world: World) -> None:  # type: ignore[no-untyped-def]
    now = time.time_ns() // 1_000_000

    def records(node: int, asked: FetchRequest) -> FetchResponse:
        """The record of each offset is as many minutes old as there are offsets behind it."""
        return FetchResponse(
            responses=tuple(
                FetchableTopicResponse(
                    topic=topic.topic,
                    partitions=tuple(
                        PartitionData(
                            partition_index=p.partition,
                            high_watermark=100,
                            records=encode_batch(
                                [LogRecord(None, b"", (), now - (100 - p.fetch_offset) * 60_000)],
                                base_offset=p.fetch_offset,
                            ),
                        )
                        for p in topic.partitions
                    ),
                )
                for topic in asked.topics
            )
        )

    world.fake.on(FetchRequest, records)
    world.groups.started[EMPTY] = {"orders:0": (30, 10), "orders:1": (100, 0)}
    (group,) = ask(world, "lag", EMPTY, "--time").data["groups"]
    assert group["max_time_lag_ms"] is None
    assert 600_000 <= group["time_lag_at_least_ms"] < 700_000
    assert 4_200_000 <= group["time_lag_at_most_ms"] < 4_300_000
    assert "some records from the start offset on are done" in group["offsets"][0]["reason"]
    assert [ask(world, "lag", EMPTY, "--fail-above", limit).code for limit in ("9m", "30m", "80m")] == [
        BAD,
        PARTIAL,
        OK,
    ]
    # Where none is done, the record at the start offset is the oldest that waits.
    world.groups.started[EMPTY]["orders:0"] = (30, 70)
    (group,) = ask(world, "lag", EMPTY, "--time").data["groups"]
    assert (group["max_time_lag_ms"] // 60_000, group["time_lag_at_most_ms"]) == (70, None)


def test_a_broker_before_4_2_reports_no_lag(ask, world: World) -> None:  # type: ignore[no-untyped-def]
    world.groups.started[EMPTY] = {"orders:0": (30, None), "orders:1": (100, None)}
    (group,) = ask(world, "describe", EMPTY).data["groups"]
    assert [(row["committed_offset"], row["lag"]) for row in group["offsets"]] == [(30, None), (100, 0)]
    assert "at most 70 wait" in group["offsets"][0]["reason"]


def test_a_plan_says_what_no_undo_brings_back(ask, world: World) -> None:  # type: ignore[no-untyped-def]
    told = ask(world, "reset-offsets", EMPTY, "--all-topics", "--to-latest")
    caution = told.data["groups"][0]["caution"]
    assert "up to 60 records beyond its start offsets are acknowledged or given up" in caution
    (item,) = ask(world, "delete", EMPTY).data["items"]
    assert "up to 60 records" in item["effect"]
    world.groups.started[EMPTY]["orders:1"] = (0, None)
    (item,) = ask(world, "delete", EMPTY).data["items"]
    assert "how many is not known" in item["effect"]


@pytest.mark.parametrize(
    "change",
    [
        f"reset-offsets {EMPTY} --all-topics --to-latest",
        f"offsets delete {EMPTY} --topic orders",
        f"delete {EMPTY}",
    ],
)
def test_an_undo_restores_start_offsets(ask, world: World, change: str) -> None:  # type: ignore[no-untyped-def]
    before = {name: start for name, (start, _) in world.groups.started[EMPTY].items()}
    assert ask(world, *change.split(), "--execute", "--yes").code == OK
    if change.startswith("delete"):
        del world.groups.share[EMPTY]
        world.groups.started[EMPTY] = {}
    undone = ask(world, "reset-offsets", "--undo", "LAST", "--execute", "--yes")
    assert undone.code == OK, undone.err
    assert {name: start for name, (start, _) in world.groups.started[EMPTY].items()} == before
    assert world.fake.requests(OffsetCommitRequest) == []


def test_an_undo_unsets_what_was_not_set_and_sets_the_rest_of_the_topic(ask, world: World) -> None:  # type: ignore[no-untyped-def]
    world.groups.started[EMPTY]["orders:1"] = (-1, None)
    assert ask(world, "reset-offsets", EMPTY, "--all-topics", "--to-latest", "--execute", "--yes").code == OK
    assert world.groups.started[EMPTY] == {"orders:0": (100, 0), "orders:1": (100, 0)}
    assert ask(world, "reset-offsets", "--undo", "LAST", "--execute", "--yes").code == OK
    assert world.groups.started[EMPTY] == {"orders:0": (30, 70)}


def test_a_plan_says_when_it_cannot_be_undone(ask, world: World) -> None:  # type: ignore[no-untyped-def]
    world.groups.started[EMPTY]["orders:1"] = (-1, None)
    told = ask(world, "reset-offsets", EMPTY, "--topic", "orders:1", "--to-latest", "--execute", "--yes")
    assert "cannot be undone" in told.data["items"][0]["effect"]
    undone = ask(world, "reset-offsets", "--undo", "LAST", "--execute", "--yes")
    assert undone.code == REFUSED
    assert world.groups.started[EMPTY]["orders:0"] == (30, 10)


def test_an_export_is_restored_as_a_share_group(ask, world: World, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "kept.json"
    assert ask(world, "delete", EMPTY, "--export", str(file), "--execute", "--yes").code == OK
    del world.groups.share[EMPTY]
    world.groups.started[EMPTY] = {}
    assert ask(world, "delete", "--restore", str(file), "--execute", "--yes").code == OK
    assert {name: start for name, (start, _) in world.groups.started[EMPTY].items()} == {
        "orders:0": 30,
        "orders:1": 0,
    }


def test_a_plan_is_stale_when_a_start_offset_moved(ask, world: World, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    plan = tmp_path / "plan.json"
    ask(world, "reset-offsets", EMPTY, "--all-topics", "--to-latest", "--plan-out", str(plan))
    world.groups.started[EMPTY]["orders:0"] = (31, 9)
    told = ask(world, "reset-offsets", "--plan", str(plan), "--execute", "--yes")
    assert told.code == REFUSED
    assert world.fake.requests(AlterShareGroupOffsetsRequest) == []


def test_without_the_log_only_what_is_seen_finished_is_healthy(ask, world: World) -> None:  # type: ignore[no-untyped-def]
    told = ask(world, "doctor", LIVE, "--without", "history")
    (checkup,) = told.data["groups"]
    assert (checkup["verdict"], told.code) == ("unknown", PARTIAL)
    assert "KG314" not in {found["code"] for found in checkup["findings"]}
    answer = world.fake.handlers[DescribeShareGroupOffsetsRequest]

    def moving(node: int, asked: object) -> object:
        start, lag = world.groups.started[LIVE]["orders:0"]
        world.groups.started[LIVE]["orders:0"] = (start + 1, lag - 1)
        return answer(node, asked)

    world.fake.on(DescribeShareGroupOffsetsRequest, moving)
    (checkup,) = ask(world, "doctor", LIVE, "--without", "history").data["groups"]
    assert {"orders-0": "reading"}.items() <= {
        place: alike["status"] for alike in checkup["statuses"] for place in alike["partitions"]
    }.items()


def test_records_without_members_are_found(ask, world: World) -> None:  # type: ignore[no-untyped-def]
    (checkup,) = ask(world, "doctor", EMPTY, "--without", "history").data["groups"]
    assert [f["code"] for f in checkup["findings"] if f["severity"] == "warn"] == ["KG119"]
    assert checkup["healthy"] is True


def test_a_deletion_without_a_plan_keeps_its_start_offsets(world: World, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    admin = ClusterView(world.fake, retry=world.fake.retry(), journal=journal)
    assert delete_groups(admin, [EMPTY]).items[0].result == "deleted"
    (entry,) = journal.entries()
    assert entry.before["offsets"] == {EMPTY: [["orders", 0, 30, -1, ""], ["orders", 1, 0, -1, ""]]}


def test_a_deletion_without_a_plan_is_refused_where_they_cannot_be_kept(old: World, tmp_path: Path) -> None:
    admin = ClusterView(old.fake, retry=old.fake.retry(), journal=Journal(tmp_path / "journal.jsonl"))
    (item,) = delete_groups(admin, [EMPTY]).items
    assert (item.result, item.error_code) == ("failed", "UNSUPPORTED_VERSION")
    assert old.fake.requests(DeleteGroupsRequest) == []
