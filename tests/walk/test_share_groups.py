"""Every command that takes groups, on share groups (KIP-932), of which this version knows no offsets.

What acts on a group refuses and sends nothing; what reads it says what is not known, and never 0, none or
healthy. A row of ROWS, or a reason in EXCUSED, is due for every command that takes groups.
"""

from pathlib import Path

import pytest
from typer import Context

from kgroup.admin.admin import Admin
from kgroup.admin.change.journal import Journal
from kgroup.cli.frame.lazy import CONTEXT_SETTINGS, walk
from kgroup.protocol.messages.delete_groups import DeleteGroupsRequest
from kgroup.protocol.messages.leave_group import LeaveGroupRequest
from kgroup.protocol.messages.offset_commit import OffsetCommitRequest
from kgroup.protocol.messages.offset_delete import OffsetDeleteRequest
from tests.unit.admin.groups import share_group
from tests.walk.test_two_rules import OK, PARTIAL, REFUSED, nothing_unknown_is_shown_as_zero
from tests.walk.world import IDLE, World, healthy

LIVE, EMPTY = "g-share", "e-share"
CHANGES = (DeleteGroupsRequest, LeaveGroupRequest, OffsetCommitRequest, OffsetDeleteRequest)
LATE = 7

ROWS: dict[str, tuple[tuple[str, int], ...]] = {
    "list": (("--topic pay", PARTIAL), ("e-*", OK)),
    "describe": ((LIVE, PARTIAL), (EMPTY, PARTIAL), ("g-*", PARTIAL), ("--all-groups", PARTIAL)),
    "lag": (
        (LIVE, PARTIAL),
        (EMPTY, PARTIAL),
        (f"{EMPTY} --time", PARTIAL),
        (f"{EMPTY} --fail-above 1000", PARTIAL),
        ("g-* --fail-above 1000", PARTIAL),
    ),
    "watch": (
        (f"{LIVE} --stop-after 2s", PARTIAL),
        (f"{EMPTY} --until lag=0 --stop-after 2s", PARTIAL),
        # Who is in it is told.
        (f"{EMPTY} --until empty --stop-after 2s", OK),
    ),
    "wait": (
        (f"{LIVE} --for lag=0 --stop-after 2s", PARTIAL),
        (f"{EMPTY} --for lag=0 --stop-after 2s", PARTIAL),
        (f"{EMPTY} --for empty --stop-after 2s", OK),
        (f"{LIVE} --for empty --stop-after 2s", LATE),
    ),
    "doctor": ((LIVE, PARTIAL), (EMPTY, PARTIAL), ("g-*", PARTIAL)),
    "coordinator": ((LIVE, OK),),
    "remove-members": ((f"{LIVE} --all --execute --yes", REFUSED),),
    "reset-offsets": (
        (f"{EMPTY} --all-topics --to-earliest", REFUSED),
        (f"{EMPTY} --topic orders --to-earliest --execute --yes", REFUSED),
        (f"{IDLE} --to-group {EMPTY} --topic pay --execute --yes", REFUSED),
    ),
    "offsets export": ((LIVE, PARTIAL), (EMPTY, PARTIAL), ("g-*", PARTIAL)),
    "offsets delete": (
        (f"{EMPTY} --all-topics", REFUSED),
        (f"{EMPTY} --topic orders --execute --yes", REFUSED),
    ),
    "offsets clone": (
        (f"{EMPTY} {IDLE} --execute --yes", REFUSED),
        (f"{IDLE} {EMPTY} --execute --yes", REFUSED),
    ),
    "delete": (
        (EMPTY, REFUSED),
        (f"{EMPTY} --execute --yes", REFUSED),
        (f"{LIVE} --execute --yes", REFUSED),
        ("e-* --execute --yes", REFUSED),
    ),
    **{
        f"{way} {verb}": ((EMPTY, REFUSED), (LIVE, REFUSED))
        for way, verbs in (
            ("upgrade", ("plan", "execute", "watch", "rehearse")),
            ("downgrade", ("plan", "execute", "watch")),
        )
        for verb in verbs
    },
    # The log of this world has no records: what it tells of those of share groups, tests/cli plays.
    "replay-log": ((f"{EMPTY} --verify", PARTIAL),),
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
    made = healthy()
    made.groups.add(share_group(LIVE, "orders:0,1"), share_group(EMPTY))
    return made


def test_every_command_that_takes_groups_has_a_row_or_a_reason() -> None:
    takes = set()
    for command in walk():
        context = Context(command, info_name=command.name, **CONTEXT_SETTINGS)
        names = {p.name for p in command.get_params(context) if p.param_type_name == "argument"}
        # `pipeline package` and `run` have a target and sources that are no groups.
        if names & TAKES_GROUPS and command.path != "pipeline package":
            takes.add(command.path)
    assert takes == ROWS.keys() | set().union(*EXCUSED.values())


@pytest.mark.parametrize(
    ("line", "code"), [(f"{path} {words}", code) for path, rows in ROWS.items() for words, code in rows]
)
def test_on_a_share_group(ask, world: World, line: str, code: int) -> None:  # type: ignore[no-untyped-def]
    told = ask(world, *line.split())
    assert told.code == code, told.err
    sent = [message for _, message, _ in world.fake.sent if isinstance(message, CHANGES)]
    assert sent == []
    if code in (PARTIAL, REFUSED) and not line.startswith("replay-log"):
        assert "share group" in told.err
    nothing_unknown_is_shown_as_zero(told.document)
    for group in (told.data or {}).get("groups", ()):
        if group["group_id"] in (LIVE, EMPTY):
            assert group.get("total_lag") is None
            assert group.get("healthy") is not True


@pytest.mark.parametrize("group", [LIVE, EMPTY])
def test_partitions_are_not_counted(ask, world: World, group: str) -> None:  # type: ignore[no-untyped-def]
    told = ask(world, "describe", group, "-o", "table")
    assert "partitions not known · lag unknown" in told.out


def test_the_others_of_a_pattern_are_deleted_and_the_share_group_is_named(ask, world: World) -> None:  # type: ignore[no-untyped-def]
    told = ask(world, "delete", EMPTY, IDLE, "--execute", "--yes")
    assert told.code == PARTIAL
    assert {i["group_id"]: i["result"] for i in told.data["items"]} == {EMPTY: "failed", IDLE: "deleted"}
    assert [r.groups_names for r in world.fake.requests(DeleteGroupsRequest)] == [(IDLE,)]
    assert f"{EMPTY}: is a share group: not touched" in told.err
    assert f"kafka-share-groups.sh --bootstrap-server HOST:PORT --group {EMPTY} --delete" in told.err


def test_a_deletion_without_a_plan_is_refused_too(world: World, tmp_path: Path) -> None:
    admin = Admin(world.fake, retry=world.fake.retry(), journal=Journal(tmp_path / "journal.jsonl"))
    (item,) = admin.delete_groups([EMPTY]).items
    assert (item.result, item.error_code) == ("failed", "SAFETY_REFUSED")
    assert world.fake.requests(DeleteGroupsRequest) == []
