"""The commands that read `__consumer_offsets` and that plan a migration, held against kafka-dump-log."""

from __future__ import annotations

import json

from .ground import DYNAMIC, NEXT, Ground
from .outcomes import WORKS, Outcome, partly

OK, REFUSED = 0, 4


def statistics(ground: Ground) -> Outcome:
    told = ground.ask("offsets-topic", "stats")
    assert told.code == OK, told
    assert told.data["total"]["records"] == len(ground.dumped_records)
    return WORKS


def raw(ground: Ground) -> Outcome:
    told = ground.ask("replay-log", "--raw")
    assert (told.code, told.err) == (OK, ""), told
    rows = [json.loads(line) for line in told.out.splitlines()]
    assert sorted((row["partition"], row["offset"]) for row in rows) == sorted(ground.dumped_records)
    assert {row["group_id"] for row in rows} == set(ground.groups)
    return WORKS


def replayed(ground: Ground) -> Outcome:
    told = ground.ask("replay-log", *ground.groups)
    assert (told.code, told.errors) == (OK, []), told
    assert {event["group_id"] for event in told.data["events"]} >= set(ground.groups)
    return WORKS


def verified(ground: Ground) -> Outcome:
    told = ground.ask("replay-log", "--verify")
    assert told.code == OK, told
    rows = told.data["groups"]
    assert {row["group_id"] for row in rows} == set(ground.groups)
    assert {row["verdict"] for row in rows} == {"same"}, rows
    left = sorted({what for row in rows for what in row["not_compared"]})
    return partly(f"compares all but {'; '.join(left)}") if left else WORKS


def blamed(ground: Ground) -> Outcome:
    told = ground.ask("blame", DYNAMIC)
    assert (told.code, told.errors) == (OK, []), told
    return WORKS


def captured(ground: Ground) -> Outcome:
    folder = ground.home / "captured"
    assert ground.ask("capture", "--out", str(folder), "--once").code == OK
    told = ground.ask("offsets-topic", "stats", "--files", str(folder))
    assert told.code == OK and told.data["total"]["records"] == len(ground.dumped_records), told
    return WORKS


def planned(ground: Ground) -> Outcome:
    told = ground.ask("upgrade", "plan", DYNAMIC)
    checks = {check["code"]: check for check in told.data["checks"]}
    if ground.kafka.version >= (4, 0):
        assert (told.code, told.data["verdict"]) == (OK, "ready"), told
        assert ground.ask("upgrade", "plan", NEXT).data["verdict"] == "already"
        return WORKS
    assert told.code == REFUSED and told.data["verdict"] == "blocked", told
    blocks = [check["message"] for check in checks.values() if check["status"] == "block"]
    unknown = [code for code, check in checks.items() if check["status"] == "unknown"]
    return partly(f"blocked: {blocks[0]}" + (f"; unknown: {', '.join(unknown)}" if unknown else ""))


def rehearsed(ground: Ground) -> Outcome:
    told = ground.ask("upgrade", "rehearse", DYNAMIC)
    if told.code != OK:
        assert told.code == REFUSED and told.data["upgrade"] == "refused", told
        return partly(
            f"says refused: {next(step['message'] for step in told.data['steps'] if step['message'])}"
        )
    assert (told.data["upgrade"], told.data["offsets_kept"]) == ("converted", True), told
    assert told.data["copied"] > 0
    return WORKS


CHECKS = {
    "replay-log": replayed,
    "replay-log --raw": raw,
    "replay-log --verify": verified,
    "blame": blamed,
    "capture --once": captured,
    "offsets-topic stats": statistics,
    "upgrade plan": planned,
    "upgrade rehearse": rehearsed,
}
