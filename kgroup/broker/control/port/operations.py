"""The operations of the control port: one line each, with their fields."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from kgroup.broker.control.control import Control
from kgroup.broker.control.faults.installed import FaultSet
from kgroup.broker.control.faults.rules import Rule
from kgroup.broker.control.nodes import of_nodes
from kgroup.broker.control.waiting import until
from kgroup.coordinator.sessions import MemberName
from kgroup.durations import duration_with_unit
from kgroup.errors import ConfigError, TimedOut

Fields: TypeAlias = Mapping[str, object]
Answer: TypeAlias = dict[str, object]
TEXT, NUMBER, FLAG, RULES = "string", "integer", "boolean", "rules"
Run: TypeAlias = Callable[[Control, Fields], Coroutine[None, None, Answer]]
KINDS: Mapping[str, type] = {TEXT: str, NUMBER: int, FLAG: bool, RULES: list}


class NotThere(ConfigError):
    """Something named in the path does not exist."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a request's body, or a part of its path."""

    kind: str
    says: str
    default: object = None
    needed: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """A request; `{name}` in its path is a field, too. `returns` has the fields of its answer, by type."""

    method: str
    path: str
    says: str
    run: Run
    returns: Mapping[str, str]
    fields: Mapping[str, Field]


async def _now(control: Control, given: Fields) -> Answer:
    return {"now_ms": control.clock.now_ms()}


async def _advance(control: Control, given: Fields) -> Answer:
    others = given["others"]
    if others not in ("kept", "silent"):
        raise ConfigError(f"others is {others!r}", "it is 'kept' or 'silent'")
    by_ms = int(_seconds(given, "by") * 1000)
    patience_s = _seconds(given, "patience")
    return {"now_ms": await control.advance(by_ms, keep=others == "kept", patience_s=patience_s)}


def _member(verb: Callable[[Control], Callable[[str, str | None], MemberName]]) -> Run:
    async def run(control: Control, given: Fields) -> Answer:
        group = given["group"]
        found = verb(control)(str(given["member"]), None if group is None else str(group))
        return {"group": found.group_id, "member": found.member_id}

    return run


async def _group(control: Control, given: Fields) -> Answer:
    found = control.seen(str(given["group"]))
    if found is None:
        raise NotThere(f"there is no group {given['group']}", "POST /groups/wait waits for it")
    return found


async def _wait_group(control: Control, given: Fields) -> Answer:
    group, members, state = str(given["group"]), given["members"], given["state"]
    if members is None and state is None:
        raise ConfigError("nothing is waited for", "give members, state or both")
    seconds = _seconds(given, "timeout")

    def holds() -> Answer | None:
        found = control.seen(group)
        if found is None or members not in (None, found["members"]):
            return None
        same = state is None or str(state).lower() == str(found["state"]).lower()
        return found if same and control.is_settled(group) else None

    found = await until(holds, seconds)
    if found is None:
        raise TimedOut(f"{group} was not as asked in {seconds:g} s: it is {control.shown(group)}")
    return found


async def _move_group(control: Control, given: Fields) -> Answer:
    node = given["node"]
    loading_ms = int(_seconds(given, "loading") * 1000)
    moved = control.brokers.move_coordinator(
        str(given["group"]), None if node is None else _int(node), loading_ms
    )
    return {"node": moved}


async def _add_faults(control: Control, given: Fields) -> Answer:
    rules = given["rules"]
    assert isinstance(rules, list)
    made = []
    for place, each in enumerate(rules, 1):
        if not isinstance(each, dict):
            raise ConfigError(f"rule {place} is {each!r}", "it is an object with the fields of a rule")
        try:
            made.append(Rule.of(each))
        except ConfigError as error:
            raise ConfigError(f"rule {place}: {error.message}", error.hint) from None
    return control.faults.add(made).shown()


async def _faults(control: Control, given: Fields) -> Answer:
    return {"faults": [each.shown() for each in control.faults.sets.values()]}


async def _fault(control: Control, given: Fields) -> Answer:
    return _found(control, given).shown()


async def _remove_faults(control: Control, given: Fields) -> Answer:
    return {"removed": sum(control.faults.remove(number) for number in tuple(control.faults.sets))}


async def _remove_fault(control: Control, given: Fields) -> Answer:
    return {"removed": int(control.faults.remove(_found(control, given).id))}


async def _wait_fault(control: Control, given: Fields) -> Answer:
    found, hits, seconds = _found(control, given), _int(given["hits"]), _seconds(given, "timeout")
    if not await control.until_hit(found, hits, seconds):
        raise TimedOut(f"fault {found.id} had {len(found.hits)} of {hits} requests in {seconds:g} s")
    return {"hits": len(found.hits)}


def _broker(verb: Callable[[Control], Callable[[int], None]]) -> Run:
    async def run(control: Control, given: Fields) -> Answer:
        node = _int(given["node"])
        if node not in control.cluster.nodes:
            raise NotThere(*of_nodes(node, control.cluster.nodes))
        verb(control)(node)
        await asyncio.sleep(0)  # connections that were ended are gone
        return {"node": node}

    return run


async def _move(control: Control, given: Fields) -> Answer:
    node = _int(given["node"])
    control.brokers.move(str(given["topic"]), _int(given["partition"]), node)
    return {"node": node}


def _found(control: Control, given: Fields) -> FaultSet:
    number = _int(given["id"])
    found = control.faults.sets.get(number)
    if found is None:
        known = ", ".join(map(str, control.faults.sets))
        raise NotThere(f"there is no fault {number}", f"the ids are {known}" if known else "there is none")
    return found


def _seconds(given: Fields, name: str) -> float:
    return duration_with_unit(str(given[name]))


def _int(value: object) -> int:
    assert isinstance(value, int)
    return value


_MEMBER = {
    "member": Field(TEXT, "Its instance id, client id or member id.", needed=True),
    "group": Field(TEXT, "Its group, where several members have the name."),
}
_NAMED = {"group": TEXT, "member": TEXT}
_GROUP = Field(TEXT, "The group's id.", needed=True)
_NODE = {"node": Field(NUMBER, "The broker's node id.", needed=True)}
_TIMEOUT = Field(TEXT, 'Real time to wait, as "30s".', "30s")
_ID = {"id": Field(NUMBER, "The fault's number.", needed=True)}
_SET = {"id": NUMBER, "rules": RULES, "hits": NUMBER, "left": NUMBER, "fired": RULES}
_STATE = {"group": TEXT, "state": TEXT, "members": NUMBER}

OPERATIONS = (
    Operation("GET", "/now", "The brokers' time, in ms since 1970.", _now, {"now_ms": NUMBER}, {}),
    Operation(
        "POST",
        "/advance",
        "Move the brokers' time forward; members that are connected and not frozen lose nothing by it.",
        _advance,
        {"now_ms": NUMBER},
        {
            "by": Field(TEXT, 'How far, as "45s".', needed=True),
            "others": Field(TEXT, '"kept", or "silent": all sessions run out.', "kept"),
            "patience": Field(TEXT, "Real time for what a rebalance waits for.", "10s"),
        },
    ),
    Operation(
        "POST", "/members/expire", "End a member's session now.", _member(lambda c: c.expire), _NAMED, _MEMBER
    ),
    Operation(
        "POST",
        "/members/freeze",
        "Freeze a member: hold all that it sends.",
        _member(lambda c: c.freeze),
        _NAMED,
        _MEMBER,
    ),
    Operation("POST", "/members/thaw", "Thaw a frozen member.", _member(lambda c: c.thaw), _NAMED, _MEMBER),
    Operation(
        "POST",
        "/groups/wait",
        "Wait until a group has so many members, or is in a state.",
        _wait_group,
        _STATE,
        {
            "group": _GROUP,
            "members": Field(NUMBER, "How many members it has."),
            "state": Field(TEXT, 'Its state, as "Stable"; in any case.'),
            "timeout": _TIMEOUT,
        },
    ),
    Operation("GET", "/groups/{group}", "A group's state and size.", _group, _STATE, {"group": _GROUP}),
    Operation(
        "POST",
        "/groups/{group}/move",
        "Make another broker coordinate a group.",
        _move_group,
        {"node": NUMBER},
        {
            "group": _GROUP,
            "node": Field(NUMBER, "Which broker; the next one if it is left out."),
            "loading": Field(TEXT, "How long it loads, in the brokers' time.", "0s"),
        },
    ),
    Operation(
        "POST",
        "/faults",
        "Set rules together.",
        _add_faults,
        _SET,
        {"rules": Field(RULES, "The rules, in the fields of kfake and kgroup's own.", needed=True)},
    ),
    Operation("GET", "/faults", "All faults, and which requests met them.", _faults, {"faults": RULES}, {}),
    Operation("DELETE", "/faults", "Remove all faults.", _remove_faults, {"removed": NUMBER}, {}),
    Operation("GET", "/faults/{id}", "One fault, and the requests that met it.", _fault, _SET, _ID),
    Operation("DELETE", "/faults/{id}", "Remove one fault.", _remove_fault, {"removed": NUMBER}, _ID),
    Operation(
        "POST",
        "/faults/{id}/wait",
        "Wait until so many requests met a fault.",
        _wait_fault,
        {"hits": NUMBER},
        {**_ID, "hits": Field(NUMBER, "How many.", 1), "timeout": _TIMEOUT},
    ),
    *(
        Operation("POST", f"/brokers/{{node}}/{name}", says, _broker(verb), {"node": NUMBER}, _NODE)
        for name, says, verb in (
            ("stop", "Stop a broker.", lambda c: c.brokers.stop),
            ("start", "Start it again.", lambda c: c.brokers.start),
            ("freeze", "Freeze it: it answers nothing.", lambda c: c.brokers.freeze),
            ("thaw", "Answer again.", lambda c: c.brokers.thaw),
        )
    ),
    Operation(
        "POST",
        "/topics/{topic}/{partition}/move",
        "Make a broker lead a partition.",
        _move,
        {"node": NUMBER},
        {
            "topic": Field(TEXT, "The topic's name.", needed=True),
            "partition": Field(NUMBER, "The partition's number.", needed=True),
            **_NODE,
        },
    ),
)
