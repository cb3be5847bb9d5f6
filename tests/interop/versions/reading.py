"""The commands that only look, each held against the tools of the broker's own release."""

from __future__ import annotations

import re
from typing import Any

from .ground import COMMITTED, DYNAMIC, EMPTY, NEXT, PARTITIONS, RECORDS, STATIC, TOPIC, Ground
from .outcomes import WORKS, Outcome, needs_later, partly

OK, PARTIAL, LATE, BAD = 0, 5, 7, 8
LAG = RECORDS - COMMITTED
HEALTHY = [DYNAMIC, EMPTY]


def every_group(ground: Ground) -> Outcome:
    told = ground.ask("list")
    assert (told.code, told.errors) == (OK, []), told
    assert sorted(group["group_id"] for group in told.data["groups"]) == sorted(ground.truth.state)
    for group in told.data["groups"]:
        state = ground.truth.state[group["group_id"]]
        kind = "consumer" if group["group_id"] == NEXT else "classic"
        assert (group["type"], group["state"]) == (kind, state["STATE"]), group
        assert group["members"] == int(state["#MEMBERS"]), group
    return WORKS


def by_state(ground: Ground) -> Outcome:
    for state in ("Stable", "Empty"):
        told = ground.ask("list", "--state", state)
        names = {group["group_id"] for group in told.data["groups"]}
        assert (told.code, names) == (
            OK,
            {g for g, r in ground.truth.state.items() if r["STATE"] == state},
        ), told
    return WORKS


def by_type(ground: Ground) -> Outcome:
    next_ones = {NEXT} & set(ground.groups)
    for kind, wanted in (("classic", set(ground.groups) - next_ones), ("consumer", next_ones)):
        told = ground.ask("list", "--type", kind)
        assert (told.code, {group["group_id"] for group in told.data["groups"]}) == (OK, wanted), told
    return WORKS


def described(ground: Ground) -> Outcome:
    told = ground.ask("describe", "--all-groups")
    untold = False
    for name in ground.groups:
        group, state = told.group(name), ground.truth.state[name]
        assert group["state"] == state["STATE"], group
        _same_members(group["members"], ground.truth.members.get(name, []))
        assert _offsets(group) == _tool_offsets(ground.truth.offsets[name]), group
        untold |= not all(member["instance_id_known"] for member in group["members"])
    if not untold:
        assert told.code == OK, told
        (known,) = ({m["instance_id"] for m in told.group(STATIC)["members"]},)
        assert known == {"i0", "i1"}
        return WORKS
    assert {m["instance_id"] for m in told.group(STATIC)["members"]} == {None}
    return partly("instance ids and subscriptions are shown as unknown: the broker does not report them")


def _same_members(members: list[dict[str, Any]], rows: list[dict[str, str]]) -> None:
    ours = {m["member_id"]: (m["client_id"], _count(m), m["instance_id"]) for m in members}
    theirs = {r["CONSUMER-ID"]: (r["CLIENT-ID"], int(r["#PARTITIONS"])) for r in rows}
    assert {key: value[:2] for key, value in ours.items()} == theirs
    for row in rows:
        if "GROUP-INSTANCE-ID" in row:
            instance = ours[row["CONSUMER-ID"]][2]
            assert row["GROUP-INSTANCE-ID"].strip("-") == (instance or ""), row
    for member, row in ((m, r) for m in members for r in rows if r["CONSUMER-ID"] == m["member_id"]):
        numbers = sorted(number for entry in member["assignment"] for number in entry["partitions"])
        assigned = row.get("ASSIGNMENT") or row["CURRENT-ASSIGNMENT"]
        assert sorted(map(int, re.findall(r"\d+", assigned))) == numbers, (member, row)


def _count(member: dict[str, Any]) -> int:
    return sum(len(entry["partitions"]) for entry in member["assignment"])


_COLUMNS = ("CURRENT-OFFSET", "LOG-END-OFFSET", "LAG")


def _tool_offsets(rows: list[dict[str, str]]) -> dict[tuple[str, int], tuple[int | None, ...]]:
    def number(text: str) -> int | None:
        return None if text == "-" else int(text)

    return {(r["TOPIC"], int(r["PARTITION"])): tuple(number(r[c]) for c in _COLUMNS) for r in rows}


def _offsets(group: dict[str, Any]) -> dict[tuple[str, int], tuple[int | None, ...]]:
    names = ("committed_offset", "log_end_offset", "lag")
    return {(r["topic"], r["partition"]): tuple(r[name] for name in names) for r in group["offsets"]}


def lag(ground: Ground) -> Outcome:
    told = ground.ask("lag", "g-*")
    for name in ground.groups:
        group = told.group(name)
        assert _offsets(group) == _tool_offsets(ground.truth.offsets[name]), group
        if name == STATIC:
            assert (group["total_lag"], group["lag_at_least"]) == (None, PARTITIONS // 2 * LAG)
        else:
            assert group["total_lag"] == PARTITIONS * LAG
    return WORKS


def lag_verdict(ground: Ground) -> Outcome:
    over, limit = str(PARTITIONS * LAG), str(PARTITIONS * LAG - 1)
    for name in HEALTHY:
        assert ground.ask("lag", name, "--fail-above", over).code == OK
        assert ground.ask("lag", name, "--fail-above", limit).code == BAD
    told = ground.ask("lag", STATIC, "--fail-above", over)
    assert told.code == BAD and told.data["verdict"]["unknown"], told
    return WORKS


def waiting(ground: Ground) -> Outcome:
    for name, condition, code in (
        (DYNAMIC, "stable", OK),
        (DYNAMIC, "members=2", OK),
        (DYNAMIC, f"lag={PARTITIONS * LAG}", OK),
        (EMPTY, "empty", OK),
        (DYNAMIC, "empty", LATE),
        (STATIC, f"lag={PARTITIONS * LAG}", LATE),
    ):
        told = ground.ask("wait", name, "--for", condition, "--stop-after", "3s" if code else "20s")
        assert told.code == code, (name, condition, told)
    return WORKS


def waiting_for_a_member(ground: Ground) -> Outcome:
    (known, *_) = (row["CONSUMER-ID"] for row in ground.truth.members[DYNAMIC])
    assert ground.ask("wait", DYNAMIC, "--for", f"member={known}", "--stop-after", "20s").code == OK
    told = ground.ask("wait", STATIC, "--for", "member=i1", "--stop-after", "20s")
    return WORKS if told.code == OK else needs_later(told)


def static_only(ground: Ground) -> Outcome:
    told = ground.ask("list", "--static-only")
    names = {group["group_id"] for group in told.data["groups"]}
    if told.code == OK:
        assert names == {STATIC, NEXT} & set(ground.groups)
        return WORKS
    assert told.code == PARTIAL and names == set(), told
    assert {error["item"] for error in told.errors} == {DYNAMIC, STATIC}
    return partly(
        "names the groups with members, of which it is not known: the broker reports no instance ids"
    )


def watching(ground: Ground) -> Outcome:
    told = ground.ask("watch", DYNAMIC, "--events", "--until", "stable", "--stop-after", "20s")
    assert told.code == OK, told
    return WORKS


def doctor(ground: Ground) -> Outcome:
    told = ground.ask("doctor", *ground.groups, "--patience", "0s")
    skipped: set[str] = set()
    for name in ground.groups:
        group = told.group(name)
        skipped |= {each for each in group["skipped"] if name != STATIC or not each.startswith("lag: ")}
        assert group["verdict"] != "unknown" or told.code not in (OK,), told
        if name in HEALTHY:
            assert not [f for f in group["findings"] if f["severity"] == "error"], group
    return partly("; ".join(sorted(skipped))) if skipped else WORKS


def coordinator(ground: Ground) -> Outcome:
    told = ground.ask("coordinator", *ground.groups)
    assert told.code == OK
    held = {int(path.parent.name.rpartition("-")[2]) for path in ground.kafka.segments()}
    for group in told.data["groups"]:
        host, node = ground.truth.state[group["group_id"]]["COORDINATOR"].split()
        mine = group["coordinator"]
        assert (host, node) == (f"{mine['host']}:{mine['port']}", f"({mine['id']})")
        assert group["offsets_partition"] in held
    return WORKS


def topics(ground: Ground) -> Outcome:
    told = ground.ask("cluster", "topics")
    (topic,) = (each for each in told.data["topics"] if each["name"] == TOPIC)
    assert (told.code, len(topic["partitions"])) == (OK, PARTITIONS)
    assert all(each["leader"] == 1 and each["isr"] == [1] for each in topic["partitions"])
    internal = ground.ask("cluster", "topics", "--internal")
    assert "__consumer_offsets" in {each["name"] for each in internal.data["topics"]}
    if topic["topic_id"]:
        return WORKS
    assert ground.kafka.version < (2, 8)
    return partly("no topic ids: brokers before 2.8 have none")


def status(ground: Ground) -> Outcome:
    told = ground.ask("cluster", "status")
    assert (told.code, told.data["leaderless"], len(told.data["brokers"])) == (OK, 0, 1), told
    assert told.data["cluster_id"]
    return WORKS


def patterns(ground: Ground) -> Outcome:
    told = ground.ask("regex", "check", "ord.*")
    assert (told.code, told.data["matches"]) == (OK, [TOPIC]), told
    return WORKS


def settings(ground: Ground) -> Outcome:
    told = ground.ask("config", "get", DYNAMIC)
    if told.code == OK:
        assert told.data["settings"], told
        return WORKS
    return needs_later(told)


CHECKS = {
    "list": every_group,
    "list --state": by_state,
    "list --type": by_type,
    "list --static-only": static_only,
    "describe": described,
    "lag": lag,
    "lag --fail-above": lag_verdict,
    "wait": waiting,
    "wait --for member=INSTANCE": waiting_for_a_member,
    "watch": watching,
    "doctor": doctor,
    "coordinator": coordinator,
    "cluster status": status,
    "cluster topics": topics,
    "regex check": patterns,
    "config get": settings,
}
