"""Plans of changes, and what follows: what a plan says the broker answers is what it answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kgroup.domain import TopicPartition

from .asking import LAGGING, Ask, Ran, seen
from .carrying import STILL_MS, Driver, Followed, carried_out, settings_of
from .judging import CRASHES, Fault
from .machine import LONG_MS, NOW_MS, Machine
from .playing import Group, played
from .states import DIMENSIONS, State

VIEWS = tuple(view for view in DIMENSIONS["visibility"] if view not in ("rolled", "unasked"))
"""Who asks for plans; the one who sees all first."""
SPECS = (
    ("--to-latest",),
    ("--to-earliest",),
    ("--shift-by", "3"),
    ("--shift-by", "-3"),
    ("--to-offset", "7"),
)
DOABLE = ("planned", "unchanged")
"""Where it is unknown whether something would be forgotten, an offset is planned that is there already."""
SILENT_S = (60, 300, 1_800)
"""For so long groups that are deleted have committed nothing."""
MOVED = {"upgrade": "consumer", "downgrade": "classic"}
ROLLS = (*MOVED, "back", "silent")
REASONS = {
    "online upgrade is disabled": "migration_policy",
    "embedded protocol.": "protocol_type",
    "maximum size": "size",
    "is malformed": "embedded_protocol",
    "custom assignor": "assignment_user_data",
}
"""The check that predicts why a broker converts no group."""
FATE = re.compile(
    r"its (\d+) partitions? (go(?:es)? to others|(?:is|are) left without a reader|\d+ (?:is|are) left)"
)
"""How many partitions a removed member has, and what becomes of them."""


SESSION = re.compile(r"(?:get|then:) (\S+) s")
"""The session timeout of members that speak the consumer protocol."""


@dataclass(frozen=True)
class Plans:
    """What one viewer is told about one group: each plan, what describe says, and one plan as text."""

    each: Mapping[str, Ran]
    described: Any
    text: tuple[str, Ran] | None


def examined(states: Sequence[State], views: Sequence[str] = VIEWS) -> Iterator[tuple[State, list[Fault]]]:
    """Play these states in one cluster, ask for plans, carry them out, and yield each with its faults."""
    machine = Machine()
    try:
        groups = played(machine, states)
        full = planned(machine, groups, "all")
        for group in groups:
            made = full[group.name]
            yield group.state, judged(group, made, followed(group, made))
        for view in views:
            less = planned(machine, groups, view) if view != "all" else {}
            for group in groups if less else ():
                yield group.state.but(visibility=view), hidden(view, less[group.name], full[group.name])
    finally:
        machine.close()


def replayed(state: State) -> list[Fault]:
    """The faults of one state, alone in its cluster."""
    looked = list(examined([state], (state.visibility,)))
    return [fault for found, bad in looked if found.visibility == state.visibility for fault in bad]


def planned(machine: Machine, groups: Sequence[Group], view: str) -> dict[str, Plans]:
    """Ask for each plan, as one who sees so much."""
    with seen(machine, view, "right") as ask:
        described = ask("describe", *(group.name for group in groups)).by_group
        made = {}
        for group in groups:
            machine.restart(settings_of(group.state))
            made[group.name] = _planned(ask, group, described.get(group.name), worded=view == "all")
    machine.seen_by("all")
    return made


def followed(group: Group, made: Plans) -> dict[str, Followed]:
    """Carry each plan out, whatever it says; return by step what followed."""
    # Share groups and those of Kafka Streams have no other protocol to move to.
    moves = group.state.protocol not in ("share", "streams")
    steps = {name: step for name, step in STEPS.items() if moves or name not in ROLLS}
    return {
        name: carried_out(group, lambda driver, step=step: step(driver, made))  # type: ignore[misc]
        for name, step in steps.items()
    }


def judged(group: Group, made: Plans, after: Mapping[str, Followed]) -> list[Fault]:
    """What is wrong with the plans for one who sees all."""
    bad = [*_crashed(made), *_agreeing(made), *_worded(made)]
    for name, found in after.items():
        bad += JUDGED[name](group, made, found)
    return bad


def hidden(view: str, made: Plans, full: Plans) -> list[Fault]:
    """What is wrong with the plans for one who sees less."""
    bad = [*_crashed(made), *_agreeing(made), *_knocked_out(view, made, full)]
    if view in LAGGING:
        bad += _storing(made)
    return [*bad, *_unstored(made)] if view == "replicas" else bad


def _planned(ask: Ask, group: Group, described: Any, *, worded: bool) -> Plans:
    name, seed = group.name, group.state.seed
    member = group.members[seed // 4 % len(group.members)] if group.members else None
    whom: tuple[str, ...] = ("--all",)
    if member is not None and seed % 4 in (0, 1):
        whom = ("--instance-id", member.instance) if member.instance else ("--member-id", member.member_id)
    elif seed % 4 == 2:
        whom = ("--left-only",)
    topics = ("--all-topics",) if seed % 2 else ("--topic", group.main)
    each = {
        "upgrade": ask("upgrade", "plan", name, *(("--read-log",) if seed % 3 else ())),
        "downgrade": ask("downgrade", "plan", name),
        "remove": ask("remove-members", name, *whom),
        "reset": ask("reset-offsets", name, "--all-topics", *SPECS[seed % len(SPECS)]),
        "offsets": ask("offsets", "delete", name, *topics),
        "delete": ask("delete", name),
        "stale": ask("delete", name, "--stale-for", f"{SILENT_S[seed % len(SILENT_S)]}s"),
    }
    one = list(each)[seed % len(each)]
    return Plans(each, described, (one, ask(*each[one].argv, output="table")) if worded else None)


def _data(ran: Ran) -> Mapping[str, Any]:
    return ran.document.get("data") or {}


def _items(ran: Ran) -> Sequence[Mapping[str, Any]]:
    return _data(ran).get("items") or ()


def _group(ran: Ran) -> Mapping[str, Any]:
    return next(iter(_data(ran).get("groups") or ()), {})


def _place(item: Mapping[str, Any]) -> TopicPartition:
    return TopicPartition(item["topic"], item["partition"])


def _identity(item: Mapping[str, Any]) -> tuple[str | None, str | None]:
    return item["instance_id"], item["member_id"]


def _crashed(made: Plans) -> Iterator[Fault]:
    for name, ran in made.each.items():
        for words in CRASHES:
            if words in ran.err or words in ran.out:
                yield Fault("crash", f"{name}: {(ran.err + ran.out)[:300]!r}")
        if not ran.document:
            yield Fault("crash", f"{name} prints no document: {ran.err[:200]}")


# agreement


def _agreeing(made: Plans) -> Iterator[Fault]:
    """Plans have the members, offsets and lags of describe."""
    if made.described is None:
        return
    members = {_identity(member): member for member in made.described["members"] or ()}
    for item in _items(made.each["remove"]):
        if item["result"] == "planned" and _identity(item) not in members:
            yield Fault("plans", f"remove-members plans {_identity(item)}, whom describe does not show")
        elif fate := FATE.search(item["effect"]):
            shown = members[_identity(item)]["assignment"] or ()
            if int(fate[1]) != sum(len(of["partitions"]) for of in shown):
                yield Fault("plans", f"remove-members: {item['effect']!r}, and describe shows {shown}")
    checks = {check["code"]: check for check in _data(made.each["upgrade"]).get("checks") or ()}
    if "type" in checks and made.described["type"] == "consumer":
        classic = [m["instance_id"] or m["member_id"] for m in members.values() if m["protocol"] == "classic"]
        if sorted(classic) != sorted(checks["type"]["evidence"]["classic"]):
            yield Fault("plans", f"upgrade: {checks['type']['message']}, and describe shows {classic}")
    rows = {_place(row): row for row in made.described["offsets"]}
    for item in _items(made.each["reset"]):
        if (row := rows.get(_place(item))) and row["committed_offset"] != item["current_offset"]:
            yield Fault(
                "plans", f"reset-offsets: {item['current_offset']}, describe {row['committed_offset']}"
            )
    lags = [("offsets delete", item) for item in _items(made.each["offsets"])]
    lags += [("delete", row) for item in _items(made.each["delete"]) for row in item["unread"]]
    for command, item in lags:
        if (row := rows.get(_place(item))) and item["lag"] is not None and row["lag"] != item["lag"]:
            yield Fault("plans", f"{command}: {item['lag']} unread, describe has a lag of {row['lag']}")


def _worded(made: Plans) -> Iterator[Fault]:
    """The text has what the document has, and ends alike."""
    assert made.text is not None
    name, text = made.text
    ran = made.each[name]
    if text.code != ran.code:
        yield Fault("plans", f"{name} ends with {text.code} as text, and with {ran.code} as a document")
    said = [c["message"] for c in _data(ran).get("checks") or ()] + [i.get("effect") for i in _items(ran)]
    for words in filter(None, said):
        if words not in text.out:
            yield Fault("plans", f"{name}: the text lacks {words[:100]!r}")


# seeing less


def _knocked_out(view: str, made: Plans, full: Plans) -> Iterator[Fault]:
    """Seeing less leaves a plan as it is, or makes it less certain, and then it ends in no success."""
    for direction in MOVED:
        less, more = _data(made.each[direction]), _data(full.each[direction])
        ran = made.each[direction]
        said, was = less.get("verdict"), more.get("verdict")
        stored = view == "replicas" and said == "blocked" and was != "already"
        if said not in (was, "unknown", None) and not stored:
            yield Fault("knock-out", f"{direction} plan without {view}: {said}, with it {was}")
        if said in (None, "unknown", "blocked") and not ran.code:
            yield Fault("knock-out", f"{direction} plan without {view}: {said}, and ends with 0")
    for name in ("remove", "reset", "offsets", "delete", "stale"):
        less_ran, more_ran = made.each[name], full.each[name]
        if not less_ran.code and more_ran.code:
            yield Fault("knock-out", f"{name} without {view} ends with 0, with it {more_ran.code}")
        known = {_key(item): item for item in _items(more_ran)}
        for item in _items(less_ran):
            was = known.get(_key(item))
            if was is None and item["result"] == "planned":
                yield Fault("knock-out", f"{name} without {view}: {_key(item)} appears")
            elif was is not None and item["result"] == "planned" and was["result"] not in DOABLE:
                yield Fault("knock-out", f"{name} without {view}: planned, with it {was['effect']}")
            elif was is not None:
                yield from _hidden(name, view, less_ran, item, was)
        gone = known.keys() - {_key(item) for item in _items(less_ran)}
        if gone and not less_ran.code:
            yield Fault(
                "knock-out", f"{name} without {view}: {len(gone)} items are missing, and it ends with 0"
            )


def _unstored(made: Plans) -> Iterator[Fault]:
    """Where nothing can be stored, the broker takes no change."""
    for item in _items(made.each["remove"]):
        if item["result"] != "not_found" and "no rebalance completes" not in item["effect"]:
            yield Fault("plans", f"remove-members: nothing can be stored, and {item['effect']!r}")


def _storing(made: Plans) -> Iterator[Fault]:
    """Where nothing can be stored, or nobody sees whether it can, no plan ends as a success."""
    for name, ran in made.each.items():
        todo = name != "remove" and _items(ran) or _data(ran).get("verdict") == "ready"
        if not ran.code and todo:
            yield Fault("plans", f"{name}: whether anything can be stored is not seen, and it ends with 0")


def _hidden(
    name: str, view: str, ran: Ran, item: Mapping[str, Any], was: Mapping[str, Any]
) -> Iterator[Fault]:
    pairs = [(item, was)]
    if "unread" in item:
        before = {_place(row): row for row in was["unread"]}
        pairs = [(row, before[_place(row)]) for row in item["unread"] if _place(row) in before]
        if len(pairs) < len(before) and not ran.code:
            lost = len(before) - len(pairs)
            yield Fault("knock-out", f"{name} without {view}: {lost} offsets are missing, and it ends with 0")
    for now, then in pairs:
        lag, full = now.get("lag"), then.get("lag")
        if lag not in (None, full):
            yield Fault("knock-out", f"{name} without {view}: {lag} unread, with it {full}")
        if lag is None and full is not None and not ran.code:
            yield Fault("knock-out", f"{name} without {view}: unread is unknown, and it ends with 0")


def _key(item: Mapping[str, Any]) -> object:
    return tuple(item.get(k) for k in ("group_id", "instance_id", "member_id", "topic", "partition"))


# what follows


def _rolled(direction: str, group: Group, made: Plans, after: Followed) -> Iterator[Fault]:
    ran = made.each[direction]
    plan = _data(ran)
    verdict = plan.get("verdict")
    checks = {check["code"]: check for check in plan.get("checks") or ()}
    moved = not after.refusals and after.type == MOVED[direction]
    moved = moved and after.classic == (0 if direction == "upgrade" else after.members)
    if made.described is None:
        return
    state, members = made.described["state"], made.described["members"] or ()
    if not members:
        foreign = verdict == "blocked" and group.state.client == "other-type"
        if verdict not in ("ready", "unknown", "already") and not foreign:
            yield Fault("plans", f"{direction} of an empty group is {verdict}")
        return
    blocks = sorted(code for code, check in checks.items() if check["status"] == "block")
    lone = len(members) == 1 and members[0]["instance_id"] is None
    what = f"{after.refusals or 'no refusal'}, {after.type}, {after.classic} classic"
    if verdict in ("ready", "already") and not moved:
        yield Fault("plans", f"{direction} is {verdict} ({state}), and the roll: {what}")
    if verdict == "blocked" and moved and not lone:
        yield Fault("plans", f"{direction} is blocked by {blocks}, and the roll goes through")
    if verdict == "unknown" and state == "Stable":
        unknown = [f"{c}: {k['message'][:80]}" for c, k in checks.items() if k["status"] == "unknown"]
        yield Fault("plans", f"{direction} is unknown, and all is seen: {unknown}")
    if verdict not in ("ready", "already", "blocked", "unknown"):
        yield Fault("plans", f"no {direction} plan: {ran.err[:150]}")
    if verdict == "blocked":
        for code, reason in after.refusals:
            expected = next((c for words, c in REASONS.items() if words in reason), None)
            if expected and expected not in blocks and not {"user_data_to_come"} & set(blocks):
                yield Fault("plans", f"{direction} is blocked by {blocks}, and the broker refuses: {reason}")
            if not expected and not any(code in checks[c]["message"] for c in blocks):
                yield Fault("plans", f"{direction} is blocked by {blocks}, none says {code} {reason}")
    if verdict == "ready" and moved:
        yield from _unhurt(direction, group, made, after)


def _unhurt(direction: str, group: Group, made: Plans, after: Followed) -> Iterator[Fault]:
    """A roll that a plan calls ready leaves no partition unread that was read, and no commit lost."""
    if any(group.hangs(member) for member in group.members):
        return  # it gives up nothing for others until it is removed, which nothing shows before
    live = (m for m in group.members if not group.dead(m) and not m.left)
    # The leader of a classic group assigns no partition here that was added later.
    read = {p for m in live for p in m.owned if group.parts[p].exists and p.partition < group.width}
    if after.settled and (lost := read - after.owners.keys()):
        yield Fault(
            "plans", f"{direction} is ready, and afterwards nobody reads {sorted(map(str, lost))[:3]}"
        )
    for row in (made.described or {}).get("offsets", ()):
        before, now = row["committed_offset"], after.offsets.get(_place(row), -1)
        if before is not None and before != now:
            yield Fault("plans", f"{direction} is ready, and {before} committed is {now} afterwards")


def _came_back(group: Group, made: Plans, after: Followed) -> Iterator[Fault]:
    checks = {check["code"]: check for check in _data(made.each["upgrade"]).get("checks") or ()}
    if "after" not in checks or after.refusals or not after.classic:
        return
    said = checks["after"]["message"]
    for words, kind in (("it converts back", "classic"), ("it stays a consumer group", "consumer")):
        if words in said and after.type != kind:
            yield Fault("plans", f"{said!r}, and it is a {after.type} group with {after.classic} members")


def _fell_silent(group: Group, made: Plans, after: Followed) -> Iterator[Fault]:
    checks = {check["code"]: check for check in _data(made.each["upgrade"]).get("checks") or ()}
    if "session_timeout" not in checks or not after.still.get(0):
        return
    said = checks["session_timeout"]["message"]
    session = SESSION.search(said)
    lasts_ms = max((ms for ms, there in after.still.items() if there), default=0)
    ends_ms = lasts_ms + STILL_MS if lasts_ms < max(after.still) else LONG_MS
    if session is None or not lasts_ms <= float(session[1]) * 1_000 <= ends_ms:
        yield Fault("plans", f"{said!r}, and silent members stay for {after.still}")


def _removed(group: Group, made: Plans, after: Followed) -> Iterator[Fault]:
    for item in _items(made.each["remove"]):
        code = after.codes.get(_identity(item)) or after.codes[""]
        expected = "NONE" if item["result"] == "planned" else "UNKNOWN_MEMBER_ID"
        if code != expected:
            yield Fault("plans", f"remove-members: {item['result']} {item['effect']!r}, and answered {code}")
        if group.moving or group.share or (fate := FATE.search(item["effect"])) is None:
            continue
        gone = [m for m in group.members if m.member_id == item["member_id"]]
        places = {p for m in gone for p in m.owned if group.parts[p].exists}
        asleep = any(group.dead(m) or m.left or group.hangs(m) for m in group.members if m not in gone)
        if asleep or not after.settled or not places:
            continue
        kept = places & after.owners.keys()
        fits = kept == places if "others" in fate[2] else not kept if "reader" in fate[2] else kept < places
        if not fits:
            left = sorted({p.topic[len(group.name) + 1 :] for p in places - kept})
            yield Fault("plans", f"remove-members: {fate[2]!r}, and nobody reads {left}")


def _answered(ran: Ran, after: Followed) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield the partitions of a plan that the broker was asked to change, and what it answered."""
    for item in _items(ran):
        if (code := after.codes.get(_place(item))) is not None:
            yield item, code


def _reset(group: Group, made: Plans, after: Followed) -> Iterator[Fault]:
    plan = _group(made.each["reset"])
    for item, code in _answered(made.each["reset"], after):
        if plan.get("refusal"):
            if code == "NONE":
                yield Fault("plans", f"reset-offsets is refused: {plan['refusal']}, and the broker takes it")
        elif item["result"] in DOABLE:
            if code != "NONE":
                yield Fault("plans", f"reset-offsets is planned ({plan.get('state')}), and answered {code}")
            elif after.offsets.get(_place(item)) != item["new_offset"]:
                yield Fault(
                    "plans", f"reset-offsets to {item['new_offset']}: {after.offsets.get(_place(item))}"
                )
        part = group.parts[_place(item)]
        if item["new_offset"] is not None and not part.start <= item["new_offset"] <= part.end:
            yield Fault(
                "plans", f"reset-offsets to {item['new_offset']}, and the log is {part.start} to {part.end}"
            )


def _forgotten(group: Group, made: Plans, after: Followed) -> Iterator[Fault]:
    plan = _group(made.each["offsets"])
    for item, code in _answered(made.each["offsets"], after):
        good = item["result"] in DOABLE and not plan.get("refusal")
        if good and made.each["offsets"].code and "is not shown now" in made.each["offsets"].err:
            continue
        if good != (code == "NONE"):
            said = plan.get("refusal") or f"{item['result']} {item['error_code']} {item['effect']}"
            yield Fault("plans", f"offsets delete: {said} ({plan.get('state')}), and answered {code}")


def _deleted(group: Group, made: Plans, after: Followed) -> Iterator[Fault]:
    last = max((commit.ms for part in group.parts.values() for commit in part.commits), default=0)
    stale = [item for item in _items(made.each["stale"]) if item["result"] == "planned"]
    silent_s = SILENT_S[group.state.seed % len(SILENT_S)]
    if stale and last > NOW_MS - silent_s * 1_000:
        yield Fault("plans", f"delete --stale-for {silent_s}s, and it committed {NOW_MS - last} ms ago")
    if stale and after.codes[""] != "NONE":
        yield Fault("plans", f"delete --stale-for {silent_s}s is planned, and answered {after.codes['']}")
    for item in _items(made.each["delete"]):
        expected = "NONE" if item["result"] == "planned" else item["error_code"]
        if after.codes[""] != expected:
            yield Fault("plans", f"delete: {item['result']} {item['effect']}, and answered {after.codes['']}")
        for row in () if group.share else item["unread"]:
            part = group.parts[_place(row)]
            lag = (
                part.end - row["committed_offset"]
                if part.exists and row["committed_offset"] <= part.end
                else None
            )
            if row["lag"] != lag:
                yield Fault("plans", f"delete: {row['lag']} unread, and there are {lag}")


STEPS: Mapping[str, Callable[[Driver, Plans], Followed]] = {
    "upgrade": lambda d, plans: d.upgrade(),
    "downgrade": lambda d, plans: d.downgrade(),
    "back": lambda d, plans: d.back(),
    "silent": lambda d, plans: d.silent(),
    "remove": lambda d, plans: d.remove([_identity(item) for item in _items(plans.each["remove"])]),
    "reset": lambda d, plans: d.commit(
        {
            _place(i): i["new_offset"]
            for i in _items(plans.each["reset"])
            if i["new_offset"] is not None and i["result"] != "failed"
        }
    ),
    "offsets": lambda d, plans: d.forget([_place(i) for i in _items(plans.each["offsets"])]),
    "delete": lambda d, plans: d.delete(),
}
JUDGED: Mapping[str, Callable[[Group, Plans, Followed], Iterator[Fault]]] = {
    "upgrade": lambda *of: _rolled("upgrade", *of),
    "downgrade": lambda *of: _rolled("downgrade", *of),
    "back": _came_back,
    "silent": _fell_silent,
    "remove": _removed,
    "reset": _reset,
    "offsets": _forgotten,
    "delete": _deleted,
}
