"""Every command where something cannot be seen: nothing unknown is shown as zero, none, empty or ready, and
what could not be seen is said, with an exit code that says it too.

A command is a row of COMMANDS: its arguments, and its exit codes in the scenes of world.py where they are not
that of the healthy world. A row for a new command is all it takes to have it walk through every scene.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from kgroup.cli.frame.lazy import walk
from tests.walk.world import IDLE, OTHER, READER, SCENES, healthy

OK, FAILED, REFUSED, PARTIAL, RIGHTS, LATE, BAD = 0, 1, 4, 5, 6, 7, 8
HIDES_GROUPS = {
    "a_broker_down": PARTIAL,
    "a_leaderless_offsets_partition": PARTIAL,
    "no_right_to_list": RIGHTS,
    "no_right_to_topics": RIGHTS,
}
"""The scenes in which a pattern cannot see all groups."""
NAMED = {name: code for name, code in HIDES_GROUPS.items() if name != "no_right_to_topics"}
"""The scenes in which the idle group cannot be seen even by name."""
NO_TOPICS = {"no_right_to_topics": RIGHTS}


@dataclass(frozen=True)
class Row:
    """A command, and the exit code in each scene where it is not that of the healthy world."""

    argv: tuple[str, ...]
    codes: Mapping[str, int]
    healthy: int = OK

    @property
    def id(self) -> str:
        return " ".join(self.argv)

    def code(self, scene: str) -> int:
        return self.codes.get(scene, self.healthy)


DELETED_ALONE = {
    "a_broker_down": LATE,
    "a_leaderless_offsets_partition": LATE,
    "no_right_to_list": RIGHTS,
    "no_right_to_topics": RIGHTS,
}
REBALANCING = (
    f"[Consumer clientId=c, groupId={READER}] Attempt to heartbeat failed since group is rebalancing"
)
LAG_UNKNOWN = {"nothing_committed": BAD, "an_undecodable_assignment": PARTIAL, "members_not_told": PARTIAL}
NOT_HEALTHY = {"a_broker_down": PARTIAL, "an_undecodable_assignment": PARTIAL, "nothing_committed": PARTIAL}
OF_OTHER = {"a_broker_down": LATE, "a_leaderless_offsets_partition": LATE}
OF_IDLE = {**OF_OTHER, "no_right_to_list": RIGHTS}
COMMANDS = (
    Row(("list",), {**HIDES_GROUPS}),
    Row(("list", "g-*"), {**HIDES_GROUPS}),
    Row(("list", "--state", "Empty"), {**HIDES_GROUPS}),
    Row(
        ("list", "--topic", "pay"),
        {**HIDES_GROUPS, **NO_TOPICS, "members_not_told": PARTIAL, "an_undecodable_assignment": PARTIAL},
    ),
    Row(("describe", "g-*"), {**HIDES_GROUPS, **NO_TOPICS, "members_not_told": PARTIAL}),
    Row(("describe", "--all-groups"), {**HIDES_GROUPS, **NO_TOPICS, "members_not_told": PARTIAL}),
    Row(("lag", "g-*"), {**HIDES_GROUPS, **NO_TOPICS, "members_not_told": PARTIAL}),
    Row(
        ("lag", "g-*", "--fail-above", "1000"),
        {**HIDES_GROUPS, **NO_TOPICS, **LAG_UNKNOWN},
    ),
    Row(
        ("lag", READER, "--fail-above", "1000"),
        {**NO_TOPICS, **LAG_UNKNOWN, "members_not_told": OK, "a_broker_down": PARTIAL},
    ),
    Row(
        ("wait", "g-*", "--for", "lag=1000", "--stop-after", "2s"),
        {
            **HIDES_GROUPS,
            "a_broker_down": LATE,
            "no_right_to_topics": LATE,
            "nothing_committed": LATE,
            "an_undecodable_assignment": LATE,
            "members_not_told": LATE,
        },
    ),
    Row(("wait", IDLE, "--for", "empty", "--stop-after", "2s"), NAMED),
    Row(("watch", "g-*", "--stop-after", "2s"), {**HIDES_GROUPS}),
    Row(("watch", IDLE, "--until", "empty", "--stop-after", "2s"), NAMED),
    Row(("offsets", "export", "g-*"), {**HIDES_GROUPS, **NO_TOPICS}),
    # Members subscribe to what is committed: of the groups that are seen in these scenes, all of them.
    Row(
        ("offsets", "delete", "g-*", "--all-topics"),
        {**dict.fromkeys(NAMED, REFUSED), **NO_TOPICS},
        healthy=PARTIAL,
    ),
    Row(
        ("offsets", "clone", READER, "g-idle"),
        {
            **NO_TOPICS,
            "a_broker_down": LATE,
            "a_leaderless_offsets_partition": LATE,
            "no_right_to_list": RIGHTS,
        },
    ),
    Row(
        ("reset-offsets", "g-*", "--all-topics", "--to-earliest"),
        # Where the idle group is hidden, all that are seen have members.
        {
            "a_broker_down": FAILED,
            "a_leaderless_offsets_partition": REFUSED,
            "no_right_to_list": REFUSED,
            "no_right_to_topics": REFUSED,
        },
        healthy=PARTIAL,
    ),
    Row(
        ("delete", "g-*"),
        {"a_broker_down": REFUSED, "a_leaderless_offsets_partition": REFUSED, "no_right_to_list": REFUSED},
        healthy=PARTIAL,
    ),
    Row(("delete", IDLE, "--execute", "--yes"), {**DELETED_ALONE}),
    Row(
        ("coordinator", IDLE),
        {"a_leaderless_offsets_partition": LATE, "no_right_to_list": RIGHTS, **NO_TOPICS},
    ),
    Row(("doctor", "g-*"), {**HIDES_GROUPS, **NOT_HEALTHY, "members_not_told": PARTIAL}),
    Row(("doctor", READER), {**NO_TOPICS, **NOT_HEALTHY}),
    Row(("explain", REBALANCING), {**NO_TOPICS, **NOT_HEALTHY}),
    Row(("doctor", "--kafka", "5"), {**HIDES_GROUPS, "an_undecodable_assignment": BAD}),
    Row(("upgrade", "plan", READER), {"an_undecodable_assignment": REFUSED, "a_broker_down": PARTIAL}),
    Row(("upgrade", "plan", READER, "--static"), {}),
    Row(("upgrade", "plan", IDLE), {**NO_TOPICS, **OF_IDLE}),
    Row(("upgrade", "plan", "g-*"), {**HIDES_GROUPS, "an_undecodable_assignment": REFUSED}),
    Row(("downgrade", "plan", OTHER), OF_OTHER),
    Row(("remove-members", READER, "--all"), {}),
    Row(("remove-members", IDLE, "--all"), OF_IDLE),
    # No such group is seen, and that is agreement only where all groups are.
    Row(
        ("replay-log", "g-none*", "--verify"),
        {**dict.fromkeys(NAMED, PARTIAL), **NO_TOPICS, "no_right_to_list": RIGHTS},
    ),
    Row(("cluster", "topics"), {**NO_TOPICS}),
    Row(("cluster", "status"), {**NO_TOPICS}),
)


NOT_WALKED = {
    "offline": {"journal list", "journal show", "schema", "completion", "config show", "simulate"}
    | {"context list", "context use", "context show", "docs", "options", "commands"},
    "asks about access rules, not about groups": {
        f"cluster acl {name}" for name in ("add", "list", "remove")
    },
    "asks nothing about groups": {"regex check", "cluster create-topic", "serve", "demo", "member run"},
    "stores what doctor says, and ends with what it could not see": {"record"},
    "reads the log, not what brokers list": {"blame", "capture"}
    | {f"offsets-topic {name}" for name in ("stats", "top", "decode")}
    | {f"pipeline {name}" for name in ("run", "query", "sql", "events", "plot", "vacuum", "package")},
    "asks about users, not about groups": {f"cluster user {name}" for name in ("add", "list", "remove")},
    "walked by tests of their own": {"mcp", "config get", "config set"}
    | {"member register", "member unregister"}
    | {f"upgrade {name}" for name in ("execute", "watch", "run", "rehearse")}
    | {f"downgrade {name}" for name in ("execute", "watch")},
    "writes what a file says, partition by partition": {"offsets import"},
}
"""Commands without a row, by the reason."""


def test_every_command_has_a_row_or_a_reason():
    every = {command.path for command in walk()}
    walked = {path for path in every for row in COMMANDS if row.id.startswith(path)}
    excused = set().union(*NOT_WALKED.values())
    assert walked | excused == every
    assert not walked & excused


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("row", COMMANDS, ids=lambda row: row.id)
def test_what_cannot_be_seen_is_said(ask, row, scene):
    world = SCENES[scene]()
    told = ask(world, *row.argv)
    assert told.code == row.code(scene), told.err
    if told.code != OK:
        assert "error: " in told.err
        assert told.document["errors"]
    assert told.document["exit_code"] == told.code
    nothing_unknown_is_shown_as_zero(told.document)


@pytest.mark.parametrize("argv", [("describe", READER), ("lag", READER)])
@pytest.mark.parametrize("scene", ["nothing_committed"])
def test_the_rule_of_totals_meets_totals(ask, argv, scene):
    told = ask(SCENES[scene](), *argv)
    assert any("total_lag" in where and "offsets" in where for where in _objects(told.document))


def nothing_unknown_is_shown_as_zero(document: Any) -> None:
    """Wherever a document has a total beside its parts, it is null as soon as a part is."""
    for where in _objects(document):
        if "total_lag" in where and "offsets" in where:
            unknown = [p for p in where["offsets"] if p["lag"] is None]
            assert where["unknown_partitions"] == len(unknown)
            assert all(p["reason"] or p["error"] for p in unknown)
            if unknown:
                assert where["total_lag"] is None
        if where.get("state") == "Stable" and where.get("group_id") == "g-streams" and "type" in where:
            assert where.get("members") in (None, [])


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from _objects(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _objects(inner)


def test_a_reader_whose_topics_are_not_told_is_no_stranger_to_the_topic(ask):
    """It was left out, exit code 0; of another one the offsets tell enough."""
    world = SCENES["an_undecodable_assignment"]()
    told = ask(world, "list", "--topic", "pay")
    assert (set(told.groups), [e["item"] for e in told.document["errors"]]) == ({IDLE}, [READER])
    told = ask(world, "list", "--topic", "orders")
    assert (told.code, set(told.groups)) == (OK, {READER, OTHER})


def test_hidden_groups_are_not_empty(ask):
    """`wait` on a pattern does not say yes for groups that it cannot see."""
    world = SCENES["a_broker_down"]()
    told = ask(world, "wait", "g-i*", "--for", "empty", "--stop-after", "2s")
    assert told.code == PARTIAL
    assert told.document["data"]["groups"] == []
    assert "broker" in told.err


@pytest.mark.parametrize("scene", ["a_broker_down", "a_leaderless_offsets_partition"])
def test_what_is_hidden_is_named(ask, scene):
    told = ask(SCENES[scene](), "list")
    assert set(told.groups) < {READER, OTHER, IDLE}
    assert "broker" in told.err


@pytest.mark.parametrize(
    ("scene", "group", "lag"),
    [
        ("healthy", READER, "0"),
        ("nothing_committed", READER, "?"),
        ("an_undecodable_assignment", READER, "?"),
        ("no_right_to_topics", OTHER, "?"),
    ],
)
def test_the_lag_of_a_member(ask, scene, group, lag):
    """An unknown one read "-", which is what a member without partitions has."""
    told = ask(SCENES[scene](), "describe", group, "-o", "csv", "--columns", "lag", "--no-headers")
    assert told.out.split() == [lag]


def test_a_partition_that_is_gone_is_no_unknown_part_of_its_topic(ask):
    """The group's total left it out, the topic's counted it as unknown."""
    world = healthy()
    world.groups.committed[READER]["orders:9"] = 5
    told = ask(world, "lag", READER, "--time").groups[READER]
    (topic,) = told["topics"]
    assert told["total_lag"] == 0
    assert topic == {
        "topic": "orders",
        "partitions": 5,
        "lag": 0,
        "lag_at_least": 0,
        "unknown_partitions": 0,
        "unreadable_lag": 0,
        "max_time_lag_ms": 0,
        "consumed_per_s": None,
        "produced_per_s": None,
    }
    world.groups.committed[READER] = {"gone:0": 5}
    gone = next(t for t in ask(world, "lag", READER).groups[READER]["topics"] if t["topic"] == "gone")
    assert (gone["lag"], gone["unknown_partitions"]) == (None, 0)


def test_totals_in_text(ask):
    told = ask(SCENES["nothing_committed"](), "describe", READER, "-o", "table")
    assert "lag unknown" in told.out
    world = SCENES["nothing_committed"]()
    world.groups.committed[READER] = {"orders:0": 90}
    assert "lag at least 10 (3 of 4 partitions unknown)" in ask(world, "describe", READER, "-o", "table").out


def test_a_healthy_world_is_told_in_full(ask):
    told = ask(healthy(), "lag", "g-*")
    assert {name: group["total_lag"] for name, group in told.groups.items()} == {
        READER: 0,
        OTHER: 0,
        IDLE: 10,
    }
    assert told.err == ""
