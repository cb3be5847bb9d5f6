"""The kinds of rules: the needs of a whole request, and those of each of its entries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from dataclasses import field as declared
from operator import attrgetter
from typing import Any, TypeAlias

from kgroup.broker.call import Answer, AnyCall, NoResponse
from kgroup.broker.dispatch import AnyApi, Dispatcher
from kgroup.broker.rights.asker import Asker, right_of
from kgroup.domain import ZERO_UUID
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.codec import Message
from kgroup.security.acls import CLUSTER_NAME, Operation, ResourceType

Rule: TypeAlias = Callable[[Asker, Dispatcher, AnyCall, AnyApi], Answer]
"""Answers a call in the handler's place: by calling the handler, or for less of it, or not at all.

Refused for a call that is refused as a whole.
"""
Entry: TypeAlias = Any
"""A part of a request or answer, of the class that has the fields a rule names."""
NameOf: TypeAlias = Callable[[Dispatcher, Entry], str | None]
"""The resource an entry is about; None for one that the handler rejects for any caller."""

REFUSALS = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}


@dataclass(frozen=True, slots=True)
class Need:
    """An operation on the resource that a field of the request names; on the cluster without one."""

    operation: Operation
    kind: ResourceType = ResourceType.CLUSTER
    field: str | None = None
    right: int = declared(init=False)
    name: Callable[[Entry], str] = declared(init=False)
    """Of the resource, from the request."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "right", right_of(self.operation, self.kind))
        object.__setattr__(
            self, "name", attrgetter(self.field) if self.field else lambda request: CLUSTER_NAME
        )

    def met(self, asker: Asker, request: Message) -> bool:
        """Return whether the caller has this right."""
        return asker.rights[self.right][self.name(request)]

    def check(self, asker: Asker, request: Message) -> None:
        """Raise Refused for a caller without this right."""
        if not asker.rights[self.right][self.name(request)]:
            text = None
            if self.kind is ResourceType.CLUSTER:
                text = f"Request needs {self.operation.name} permission."
            raise Refused(REFUSALS[self.kind], text)


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


@dataclass(frozen=True, slots=True)
class Each:
    """Every entry by itself: refused ones do not reach the handler, and are added to its answers.

    `entries` and `answers` are the fields of the request and of the response. With `even_none` the handler
    is called even when no entry is left, as the group or the like may be wrong as well. `refusal` makes the
    answer to a refused entry, if the API's own refusal of a request has none.
    """

    entries: str
    answers: str
    operation: Operation
    kind: ResourceType
    name: NameOf
    needs: tuple[Need, ...] = ()
    unless: Need | None = None
    """With this right no other is needed."""
    even_none: bool = False
    refusal: Callable[[Entry, ErrorCode], Entry] | None = None

    def __call__(self, asker: Asker, broker: Dispatcher, call: AnyCall, api: AnyApi) -> Answer:
        request = call.body
        for need in self.needs:
            need.check(asker, request)
        if self.unless is not None and self.unless.met(asker, request):
            return api.handle(broker, call)
        may = asker.rights[right_of(self.operation, self.kind)]
        allowed: list[Entry] = []
        refused: list[Entry] = []
        for entry in getattr(request, self.entries):
            name = self.name(broker, entry)
            (allowed if name is None or may[name] else refused).append(entry)
        if not refused:
            return api.handle(broker, call)
        body = replace(request, **{self.entries: tuple(allowed)})
        if self.refusal is not None:
            added = tuple(self.refusal(entry, REFUSALS[self.kind]) for entry in refused)
            return with_refused(broker, call, api, body, self.answers, added)
        answer = api.refuse(replace(request, **{self.entries: tuple(refused)}), REFUSALS[self.kind], None)
        if not allowed and not self.even_none:
            return answer
        return with_refused(broker, call, api, body, self.answers, getattr(answer, self.answers))


def with_refused(
    broker: Dispatcher, call: AnyCall, api: AnyApi, body: Message, field: str, more: tuple[Entry, ...]
) -> Answer:
    """Return the handler's answer to `body`, with `more` in one of its fields."""
    return asked(
        broker, call, api, body, lambda found: replace(found, **{field: (*getattr(found, field), *more)})
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


def shown(
    field: str, operation: Operation, kind: ResourceType, name: str, unless: Need | None = None
) -> Rule:
    """Return the handler's answer without the entries that the caller may not see."""

    def rule(asker: Asker, broker: Dispatcher, call: AnyCall, api: AnyApi) -> Answer:
        if unless is not None and unless.met(asker, call.body):
            return api.handle(broker, call)

        def seen(found: Entry) -> Message:
            kept = tuple(e for e in getattr(found, field) if asker.may(operation, kind, getattr(e, name)))
            answer: Message = replace(found, **{field: kept})
            return answer

        return asked(broker, call, api, call.body, seen)

    return rule


def itself(broker: Dispatcher, entry: str) -> str:
    """Return the name that an entry is."""
    return entry


def called(field: str) -> NameOf:
    """Return a reader of the name in a field of an entry."""

    def name(broker: Dispatcher, entry: Entry) -> str | None:
        found: str | None = getattr(entry, field)
        return found

    return name


def by_id(broker: Dispatcher, entry: Entry) -> str | None:
    """Return the topic name of an entry with a name or an id; None for an unknown id."""
    if entry.topic_id == ZERO_UUID:
        name: str = entry.name
        return name
    return broker.cluster.catalog.image.name_of(entry.topic_id)
