"""Serving a request of which the rules fail some or all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import TypeAlias

from kgroup.broker.call import Answer, AnyCall, NoResponse
from kgroup.broker.control.faults.sites import At, Site, entries_at, merged, only
from kgroup.broker.dispatch import AnyApi
from kgroup.errors import ErrorCode
from kgroup.protocol.anatomy import Entry
from kgroup.protocol.codec import Message
from kgroup.protocol.registry import ApiKey
from kgroup.protocol.requests import ANATOMY, refusal, refusal_of_entries

Handle: TypeAlias = Callable[[AnyCall], Answer]


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
    if api.key == ApiKey.FETCH:
        call.failing = {(s.topic, s.partition or 0): codes[s.at] for s in sites if s.at in codes}
        return handle(call)
    answer = _answer(handle, api, call, sites, codes, entries)
    if api.key == ApiKey.PRODUCE and not call.body.acks and answer is not None:
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
    body, array = call.body, entries_at(api.key, call.version)
    skipped = {at for at, code in codes.items() if code not in ANATOMY[api.key].late}
    nothing_left = len(skipped) == len(sites)
    first = next(iter(codes.values()))
    if array is None or (nothing_left and not entries and set(codes.values()) == {first}):
        return refusal(body, first) if skipped else _finished(handle, call, lambda _: refusal(body, first))
    if api.key == ApiKey.OFFSET_FETCH and body.groups:
        return _finished(handle, call, lambda answer: _offsets(answer, body, codes))

    def failed(code: ErrorCode) -> Entry:
        return refusal_of_entries(only(array, body, [at for at, own in codes.items() if own is code]), code)

    def finish(answer: Entry) -> Message:
        for code in dict.fromkeys(codes.values()):
            answer = merged(array, answer, failed(code))
        made: Message = answer
        return made

    if nothing_left:
        return finish(failed(first))
    served = only(array, body, [site.at for site in sites if site.at not in skipped]) if skipped else body
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
    for index, asked in enumerate(body.groups):
        answered = next(group for group in answer.groups if group.group_id == asked.group_id)
        if (index,) in codes:
            groups.append(replace(answered, topics=(), error_code=codes[index,]))
            continue
        named = {
            (topic.topic_id, topic.name, number): codes[index, first, second]
            for first, topic in enumerate(asked.topics or ())
            for second, number in enumerate(topic.partition_indexes)
            if (index, first, second) in codes
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
            for topic in answered.topics
        )
        groups.append(replace(answered, topics=topics))
    made: Message = replace(answer, groups=tuple(groups))
    return made
