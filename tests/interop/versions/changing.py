"""The commands that change something: plan, execute, and what the broker's own tools say afterwards."""

from __future__ import annotations

from tests.ran import Ran

from ..waiting import eventually
from .ground import COMMITTED, DYNAMIC, EMPTY, PARTITIONS, RECORDS, STATIC, TOPIC, Ground
from .outcomes import WORKS, Outcome, needs_later

OK, NOT_FOUND, REFUSED = 0, 3, 4
COPY = "g-copy"
CommittedOffsets = dict[int, int]


def tool_offsets(ground: Ground, group: str) -> CommittedOffsets:
    """Committed offsets by partition as the broker's own tool tells them; none for no such group."""
    found = ground.consumer_groups("--describe", "--group", group, "--offsets").get(group, [])
    return {int(r["PARTITION"]): int(r["CURRENT-OFFSET"]) for r in found if r["CURRENT-OFFSET"] != "-"}


def all_at(offset: int) -> CommittedOffsets:
    return dict.fromkeys(range(PARTITIONS), offset)


def do(ground: Ground, *argv: str) -> Ran:
    """Plan, which changes nothing, then execute."""
    planned = ground.ask(*argv)
    if planned.code:
        return planned
    assert planned.data["executed"] is False, planned
    return ground.ask(*argv, "--execute", "--yes")


def exported(ground: Ground) -> Outcome:
    told = ground.ask("offsets", "export", EMPTY)
    rows = told.group(EMPTY)["offsets"]
    assert (told.code, {r["partition"]: r["committed_offset"] for r in rows}) == (OK, all_at(COMMITTED))
    assert {row["CURRENT-OFFSET"] for row in ground.truth.offsets[EMPTY]} == {str(COMMITTED)}
    (ground.home / "export.json").write_text(told.out)
    return WORKS


def cloned(ground: Ground) -> Outcome:
    told = do(ground, "offsets", "clone", EMPTY, COPY)
    assert told.code == OK, told
    assert tool_offsets(ground, COPY) == all_at(COMMITTED)
    return WORKS


def reset(ground: Ground) -> Outcome:
    told = do(ground, "reset-offsets", COPY, "--all-topics", "--to-latest")
    assert told.code == OK, told
    assert tool_offsets(ground, COPY) == all_at(RECORDS)
    refused = ground.ask("reset-offsets", DYNAMIC, "--all-topics", "--to-latest", "--execute", "--yes")
    assert refused.code == REFUSED, refused
    assert tool_offsets(ground, DYNAMIC) == all_at(COMMITTED)
    return WORKS


def undone(ground: Ground) -> Outcome:
    told = do(ground, "reset-offsets", "--undo", "last")
    assert told.code == OK, told
    assert tool_offsets(ground, COPY) == all_at(COMMITTED)
    return WORKS


def undone_to_nothing(ground: Ground) -> Outcome:
    """The undo of a clone: offsets that were not there before are deleted."""
    assert do(ground, "offsets", "clone", EMPTY, "g-undone").code == OK
    told = do(ground, "reset-offsets", "--undo", "last")
    left = tool_offsets(ground, "g-undone")
    if told.code == OK:
        assert left == {}
        return WORKS
    assert left == all_at(COMMITTED)
    return needs_later(told)


def offsets_deleted(ground: Ground) -> Outcome:
    told = do(ground, "offsets", "delete", COPY, "--topic", f"{TOPIC}:0")
    left = tool_offsets(ground, COPY)
    if told.code == OK:
        assert left == dict.fromkeys(range(1, PARTITIONS), COMMITTED)
        return WORKS
    assert left == all_at(COMMITTED)
    return needs_later(told)


def imported(ground: Ground) -> Outcome:
    assert do(ground, "reset-offsets", EMPTY, "--all-topics", "--to-earliest").code == OK
    told = do(ground, "offsets", "import", str(ground.home / "export.json"))
    assert told.code == OK, told
    assert tool_offsets(ground, EMPTY) == all_at(COMMITTED)
    return WORKS


def deleted(ground: Ground) -> Outcome:
    kept = str(ground.home / "kept.json")
    told = ground.ask("delete", COPY, "--export", kept, "--execute", "--yes")
    assert told.code == OK, told
    assert COPY not in {group["group_id"] for group in ground.ask("list").data["groups"]}
    assert tool_offsets(ground, COPY) == {}
    live = ground.ask("delete", DYNAMIC, "--export", f"{kept}.live", "--execute", "--yes")
    assert live.code == REFUSED, live
    return WORKS


def removed_by_instance(ground: Ground) -> Outcome:
    before = ids(ground, STATIC)
    told = do(ground, "remove-members", STATIC, "--instance-id", "i1")
    if told.code != OK:
        assert ids(ground, STATIC) == before
        return needs_later(told)
    assert [(i["instance_id"], i["result"]) for i in told.data["items"]] == [("i1", "removed")]
    eventually(lambda: len(ids(ground, STATIC)) == 2 and ids(ground, STATIC) != before, what="i1 comes back")
    missing = ground.ask("remove-members", STATIC, "--instance-id", "nobody")
    assert missing.code == NOT_FOUND, missing
    return WORKS


def removed_all(ground: Ground) -> Outcome:
    before = ids(ground, DYNAMIC)
    told = do(ground, "remove-members", DYNAMIC, "--all")
    if told.code != OK:
        assert ids(ground, DYNAMIC) == before
        return needs_later(told)
    assert {(i["member_id"], i["result"]) for i in told.data["items"]} == {(m, "removed") for m in before}
    again = eventually(lambda: len(found := ids(ground, DYNAMIC)) == 2 and found, what="they come back")
    assert not before & again
    return WORKS


def ids(ground: Ground, group: str) -> set[str]:
    """Member ids, as the broker's own tool tells them."""
    table = ground.consumer_groups("--describe", "--group", group, "--members").get(group, [])
    return {row["CONSUMER-ID"] for row in table if row["CONSUMER-ID"] != "-"}


def removed_one(ground: Ground) -> Outcome:
    before = ids(ground, DYNAMIC)
    told = do(ground, "remove-members", DYNAMIC, "--member-id", min(before))
    assert told.code == OK, told
    eventually(
        lambda: len(found := ids(ground, DYNAMIC)) == 2 and min(before) not in found, what="it is back"
    )
    return WORKS


def created(ground: Ground) -> Outcome:
    return _created(ground, "made", "--partitions", "2", "--replication-factor", "1")


def created_as_usual(ground: Ground) -> Outcome:
    """With the broker's own numbers."""
    return _created(ground, "usual")


def _created(ground: Ground, name: str, *options: str) -> Outcome:
    told = ground.ask("cluster", "create-topic", name, *options)
    listed = {topic["name"] for topic in ground.ask("cluster", "topics").data["topics"]}
    assert (name in listed) == (told.code == OK), told
    return WORKS if told.code == OK else needs_later(told)


CHECKS = {
    "offsets export": exported,
    "offsets clone": cloned,
    "reset-offsets": reset,
    "reset-offsets --undo": undone,
    "reset-offsets --undo (of new offsets)": undone_to_nothing,
    "offsets delete": offsets_deleted,
    "offsets import": imported,
    "delete": deleted,
    "remove-members --instance-id": removed_by_instance,
    "remove-members --member-id": removed_one,
    "remove-members --all": removed_all,
    "cluster create-topic --partitions --replication-factor": created,
    "cluster create-topic": created_as_usual,
}
