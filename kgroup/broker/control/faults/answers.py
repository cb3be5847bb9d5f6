"""Serving a request of which the rules fail some or all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import TypeAlias

from kgroup.broker.call import Answer, AnyCall, NoResponse
from kgroup.broker.control.faults.sites import (
    FETCH,
    OFFSET_FETCH,
    PRODUCE,
    At,
    Site,
    refused_entries,
    shape_of,
)
from kgroup.broker.dispatch import AnyApi
from kgroup.broker.rights.rule import Entry
from kgroup.errors import ErrorCode
from kgroup.protocol.codec import Message

Handle: TypeAlias = Callable[[AnyCall], Answer]
_TIMED_OUT = frozenset({ErrorCode.REQUEST_TIMED_OUT})
_APPENDED = _TIMED_OUT | {ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND}
DONE_BEFORE: Mapping[int, Collection[ErrorCode]] = {
    **dict.fromkeys((PRODUCE, 27), _APPENDED),
    **dict.fromkeys((8, 19, 20, 21, 28, 30, 31, 33, 37, 42, 43, 44, 45, 51, 57), _TIMED_OUT),
}
"""The errors that a broker may answer with after the work was done (as in kfake): there, it is done."""


def failing(
    handle: Handle,
    api: AnyApi,
    call: AnyCall,
    sites: Collection[Site],
    codes: Mapping[At, ErrorCode],
    entries: bool,
) -> Answer:
    """Answer a call, its entries with these errors; `entries` if only those have errors.

    A failed entry does not reach the handler, except for errors that stand for work done.
    """
    if api.key == FETCH:
        call.failing = {(s.topic, s.partition or 0): codes[s.at] for s in sites if s.at in codes}
        return handle(call)
    answer = _answer(handle, api, call, sites, codes, entries)
    if api.key == PRODUCE and not call.body.acks and answer is not None:
        return NoResponse.CLOSE_CONNECTION
    return answer


def _answer(
    handle: Handle,
    api: AnyApi,
    call: AnyCall,
    sites: Collection[Site],
    codes: Mapping[At, ErrorCode],
    entries: bool,
) -> Answer:
    body, shape = call.body, shape_of(api.key, call.version)
    skipped = {at for at, code in codes.items() if code not in DONE_BEFORE.get(api.key, ())}
    nothing_left = len(skipped) == len(sites)
    first = next(iter(codes.values()))
    if shape is None or (nothing_left and not entries and set(codes.values()) == {first}):
        return (
            api.refuse(body, first, None)
            if skipped
            else _finished(handle, call, lambda _: api.refuse(body, first, None))
        )
    if api.key == OFFSET_FETCH and body.groups:
        return _finished(handle, call, lambda answer: _offsets(answer, body, codes))

    def failed(code: ErrorCode) -> Entry:
        part = shape.only(body, [at for at, each in codes.items() if each is code])
        return refused_entries(part, code) or api.refuse(part, code, None)

    def finish(answer: Entry) -> Message:
        for code in dict.fromkeys(codes.values()):
            answer = shape.merged(answer, failed(code))
        merged: Message = answer
        return merged

    if nothing_left:
        return finish(failed(first))
    served = shape.only(body, [site.at for site in sites if site.at not in skipped]) if skipped else body
    return _finished(handle, call, finish, served)


def _finished(
    handle: Handle, call: AnyCall, finish: Callable[[Entry], Message], body: Message | None = None
) -> Answer:
    """Return what `finish` makes of the handler's answer, now or later."""

    def later(response: Message | None) -> None:
        call.answer(None if response is None else finish(response))

    part = call.part(call.body if body is None else body, later)
    answer = handle(part)
    if answer is None:
        call.forget = part.forget
        return None
    return answer if isinstance(answer, NoResponse) else finish(answer)


def _offsets(answer: Entry, body: Entry, codes: Mapping[At, ErrorCode]) -> Message:
    """Answer OffsetFetch: the error stands on a group, or on partitions of it, and nothing is done for it."""
    groups = []
    for place, asked in enumerate(body.groups):
        found = next(each for each in answer.groups if each.group_id == asked.group_id)
        if (place,) in codes:
            groups.append(replace(found, topics=(), error_code=codes[place,]))
            continue
        named = {
            (topic.topic_id, topic.name, number): codes[place, first, second]
            for first, topic in enumerate(asked.topics or ())
            for second, number in enumerate(topic.partition_indexes)
            if (place, first, second) in codes
        }
        topics = tuple(
            replace(
                topic,
                partitions=tuple(
                    p
                    if (code := named.get((topic.topic_id, topic.name, p.partition_index))) is None
                    else replace(p, committed_offset=-1, error_code=code)
                    for p in topic.partitions
                ),
            )
            for topic in found.topics
        )
        groups.append(replace(found, topics=topics))
    merged: Message = replace(answer, groups=tuple(groups))
    return merged
