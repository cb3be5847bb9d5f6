"""The kinds of rules: the needs of a whole request, and those of each of its entries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from kgroup.broker.call import Answer, AnyCall, NoResponse
from kgroup.broker.dispatch import AnyApi, Dispatcher
from kgroup.broker.rights.asker import Asker
from kgroup.domain import ZERO_UUID
from kgroup.errors import ErrorCode
from kgroup.protocol import registry
from kgroup.protocol.anatomy import RESOURCE_TYPES, TOPIC, Array, Each, Entry, Shown
from kgroup.protocol.codec import Message
from kgroup.protocol.registry import ApiKey
from kgroup.protocol.requests import ANATOMY, refusal
from kgroup.security.acls import Operation, ResourceType
from kgroup.security.needs import REFUSALS, Need, right_of

Rule: TypeAlias = Callable[[Asker, Dispatcher, AnyCall, AnyApi], Answer]
"""Answers a call in the handler's place: by calling the handler, or for less of it, or not at all.

Refused for a call that is refused as a whole.
"""
NameOf: TypeAlias = Callable[[Dispatcher, Entry], str | None]
"""The resource an entry is about; None for one that the handler rejects for any caller."""


def whole(*needs: Need) -> Rule:
    """Allow all of a request, or nothing; the first need that is not met refuses it."""
    if len(needs) == 1:
        # Written out for the heartbeats, which are most of all requests.
        right, name, check = needs[0].right, needs[0].name, needs[0].check

        def only(asker: Asker, broker: Dispatcher, call: AnyCall, api: AnyApi) -> Answer:
            if not asker.rights[right][name(call.body)]:
                check(asker, call.body)
            return api.handle(broker, call)

        return only

    def rule(asker: Asker, broker: Dispatcher, call: AnyCall, api: AnyApi) -> Answer:
        for need in needs:
            need.check(asker, call.body)
        return api.handle(broker, call)

    return rule


def per_entry(
    array: Array, right: Each, kind: ResourceType | None = None, name: NameOf | None = None
) -> Rule:
    """Judge every entry by itself: refused ones do not reach the handler, and are added to its answers.

    `kind` is the type of what the entries name where the request decides it, `name` reads an entry's name.
    """
    named = name or namer(array)
    kind = kind or RESOURCE_TYPES[array.kind or TOPIC]
    needs, unless, decided, code = right.needs, right.unless, right_of(right.operation, kind), REFUSALS[kind]

    def rule(asker: Asker, broker: Dispatcher, call: AnyCall, api: AnyApi) -> Answer:
        request = call.body
        for need in needs:
            need.check(asker, request)
        if unless is not None and unless.met(asker, request):
            return api.handle(broker, call)
        may = asker.rights[decided]
        allowed: list[Entry] = []
        refused: list[Entry] = []
        for entry in getattr(request, array.asked):
            resource = named(broker, entry)
            (allowed if resource is None or may[resource] else refused).append(entry)
        if not refused:
            return api.handle(broker, call)
        part = replace(request, **{array.asked: tuple(refused)})
        if not allowed and not right.even_none:
            return refusal(part, code)
        body = replace(request, **{array.asked: tuple(allowed)})
        return with_refused(broker, call, api, body, array, refused_in(array, part, code))

    return rule


def entries_of(
    key: ApiKey, right: Each, kind: ResourceType | None = None, name: NameOf | None = None
) -> Rule:
    """Return the rule of `per_entry` for the entries of an API, as a part of a longer rule."""
    return per_entry(array_of(key), right, kind, name)


def array_of(key: int) -> Array:
    """Return the entries of an API that has some."""
    array = ANATOMY[key].entries
    assert array is not None
    return array


def refused_in(array: Array, request: Message, code: ErrorCode) -> tuple[Entry, ...]:
    """Return the answers that refuse the entries of `request` one by one."""
    return array.refused(request, code, None, registry.response_class(request.API))


def with_refused(
    broker: Dispatcher, call: AnyCall, api: AnyApi, body: Message, array: Array, more: tuple[Entry, ...]
) -> Answer:
    """Return the handler's answer to `body`, with the answers about refused entries."""
    field = array.answered
    return asked(
        broker, call, api, body, lambda reply: replace(reply, **{field: (*getattr(reply, field), *more)})
    )


def asked(
    broker: Dispatcher, call: AnyCall, api: AnyApi, body: Message, finish: Callable[[Entry], Message]
) -> Answer:
    """Return what `finish` makes of the handler's answer to `body`, now or later."""

    def later(response: Message | None) -> None:
        call.answer(None if response is None else finish(response))

    part = call.part(body, later)
    answer = api.handle(broker, part)
    if answer is None:
        call.forget = part.forget
        return None
    return answer if isinstance(answer, NoResponse) else finish(answer)


def shown(right: Shown) -> Rule:
    """Return the handler's answer without the entries that the caller may not see."""
    decided = right_of(Operation.DESCRIBE, right.kind)

    def rule(asker: Asker, broker: Dispatcher, call: AnyCall, api: AnyApi) -> Answer:
        if right.unless is not None and right.unless.met(asker, call.body):
            return api.handle(broker, call)

        def seen(entry: Entry) -> Message:
            may = asker.rights[decided]
            kept = tuple(e for e in getattr(entry, right.array) if may[getattr(e, right.name)])
            answer: Message = replace(entry, **{right.array: kept})
            return answer

        return asked(broker, call, api, call.body, seen)

    return rule


def namer(array: Array) -> NameOf:
    """Return a reader of the name of an entry: of a topic with an id it is the catalog's."""
    if any(key == "topic_id" for key, _ in array.pairs):
        return by_id
    field = array.pairs[0][1]
    return (lambda broker, entry: getattr(entry, field)) if field else lambda broker, entry: entry


def by_id(broker: Dispatcher, entry: Entry) -> str | None:
    """Return the topic name of an entry with a name or an id; None for an unknown id."""
    if entry.topic_id == ZERO_UUID:
        name: str = entry.name
        return name
    return broker.cluster.catalog.image.name_of(entry.topic_id)
