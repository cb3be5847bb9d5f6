"""The parts of a request that a rule can select, and answers in which some of them failed.

A request is about one group or transaction as a whole, or has entries: names, or topics with their
partitions. Entries that fail do not reach the handler, and stand in its answer with their error, as in kfake.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

from kgroup.broker.handlers.coordinators import GROUP as GROUP_KEY
from kgroup.broker.handlers.coordinators import MANY_KEYS_SINCE, TRANSACTION
from kgroup.domain import ZERO_UUID
from kgroup.protocol import registry
from kgroup.protocol.anatomy import (
    GROUP,
    PARTITION,
    RESOURCE,
    TOPIC,
    TXN_ID,
    Array,
    Entry,
    has_field,
)
from kgroup.protocol.registry import ApiKey
from kgroup.protocol.requests import ANATOMY, TOPICS_OF_GROUP

At: TypeAlias = tuple[int, ...]
"""Where an entry stands: () is the whole request, then places in its arrays."""
NameOf: TypeAlias = Callable[[bytes], str | None]
"""The name of the topic with an id; None for an id that no topic has."""

SELECTORS = ("topic", "topic_id", "partitions", "group", "txn_id", "resource")
WHOLE: At = ()


class Site(NamedTuple):
    """The known names of a part of a request; None for what it does not name."""

    at: At = WHOLE
    topic: str | None = None
    topic_id: bytes | None = None
    partition: int | None = None
    group: str | None = None
    txn_id: str | None = None
    resource: str | None = None


_SELECTS = {
    TOPIC: ("topic", "topic_id"),
    PARTITION: ("partitions",),
    GROUP: ("group",),
    TXN_ID: ("txn_id",),
    RESOURCE: ("resource",),
}
_WHOLE_FIELDS = {
    "group_id": "group",
    "transactional_id": "txn_id",
    "v3_and_below_transactional_id": "txn_id",
}
"""What a request names once, for all of its entries."""


def selectors_of(key: int) -> frozenset[str]:
    """Return the selectors that requests of an API carry."""
    row, request = ANATOMY[key], registry.request_class(key)
    selectors = {selector for field, selector in _WHOLE_FIELDS.items() if has_field(request, field)}
    for array in () if row.fails_whole else (row.entries, row.older):
        while array is not None:
            selectors |= {*_SELECTS[array.kind]} if array.kind else set()
            array = array.inner
    return frozenset(selectors | ({"txn_id"} if key == ApiKey.FIND_COORDINATOR else set()))


def entries_at(key: int, version: int) -> Array | None:
    """Return the entries of which some may fail; None if a request fails as a whole."""
    row = ANATOMY[key]
    array = row.entries_at(version)
    return array if array is not None and array.kind and not row.fails_whole else None


def sites_in(array: Array, owner: Entry, name_of: NameOf, above: Site) -> Iterator[Site]:
    """Yield the entries of an array of `owner`, which is at `above`, in their order."""
    for index, entry in enumerate(getattr(owner, array.asked) or ()):
        site = above._replace(at=(*above.at, index), **_names(array, entry, name_of))
        if array.inner is None:
            yield site
        else:
            yield from sites_in(array.inner, entry, name_of, site)


def _names(array: Array, entry: Entry, name_of: NameOf) -> dict[str, Any]:
    name = array.name_of(entry)
    topic_id = getattr(entry, "topic_id", ZERO_UUID)
    if array.kind == TOPIC and topic_id != ZERO_UUID:
        return {"topic": name or name_of(topic_id), "topic_id": topic_id}
    if array.kind == TOPIC:
        return {"topic": name or None}
    return {array.kind: name} if array.kind else {}


def only(array: Array, owner: Entry, kept: Collection[At], above: At = WHOLE) -> Entry:
    """Return `owner`, the request or an entry of it, with these entries alone."""
    entries = []
    for index, entry in enumerate(getattr(owner, array.asked) or ()):
        at = (*above, index)
        if array.inner is not None:
            part = only(array.inner, entry, kept, at)
            if getattr(part, array.inner.asked):
                entries.append(part)
        elif at in kept:
            entries.append(entry)
    return replace(owner, **{array.asked: tuple(entries)})


def merged(array: Array, answer: Entry, failed: Entry) -> Entry:
    """Return an answer with the entries of another one, in the place of its own or in addition."""
    own, more = getattr(answer, array.answered), getattr(failed, array.answered)
    if array.inner is None:
        names = {array.named(entry) for entry in more}
        entries = (*(entry for entry in own if array.named(entry) not in names), *more)
    else:
        known = {array.named(entry): entry for entry in own}
        for entry in more:
            name = array.named(entry)
            known[name] = merged(array.inner, known.get(name, entry), entry)
        entries = tuple(known.values())
    return replace(answer, **{array.answered: entries})


def sites_of(body: Entry, version: int, name_of: NameOf) -> list[Site]:
    """Return the entries of a request, with what holds for all of them; without any, the whole request."""
    if body.API == ApiKey.FIND_COORDINATOR:
        one = version < MANY_KEYS_SINCE
        keys = (body.key,) if one else body.coordinator_keys
        kind = {GROUP_KEY: "group", TRANSACTION: "txn_id"}.get(body.key_type)
        return [Site(WHOLE if one else (n,), **({kind: key} if kind else {})) for n, key in enumerate(keys)]
    named = {kind: value for field, kind in _WHOLE_FIELDS.items() if (value := getattr(body, field, None))}
    whole = Site(**named)
    array = entries_at(body.API, version)
    if array is None:
        return [whole]
    sites = []
    for site in sites_in(array, body, name_of, whole):
        sites.append(site)
        if body.API == ApiKey.OFFSET_FETCH and version >= ANATOMY[body.API].since:
            sites += sites_in(TOPICS_OF_GROUP, body.groups[site.at[0]], name_of, site)
    return sites or [whole]
