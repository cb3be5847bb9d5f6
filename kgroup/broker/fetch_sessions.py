"""Fetch sessions (KIP-227): a broker keeps what a client fetches, so that only changes travel.

Kafka's FetchManager, FetchContext and FetchSession are the source. Followers and their privilege are
omitted: no follower replicates from this broker.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.messages.fetch import FetchPartition, FetchRequest, PartitionData

NO_SESSION = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
INT32_MAX = (1 << 31) - 1
STALE_MS = 120_000
"""How long a larger session does not evict one (MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS)."""
IDS_SINCE = 13

Named: TypeAlias = tuple[str | bytes, int]
"""A partition as its client names it: the topic's name, or its id from version 13 on; and the number."""


@dataclass(slots=True)
class Wanted:
    """A fetched partition: how it was named, its topic's name if known, and the last answer's offsets."""

    topic: str
    topic_id: bytes
    name: str | None
    ask: FetchPartition
    high_watermark: int = -1
    log_start_offset: int = -1

    def news_in(self, data: PartitionData) -> bool:
        """Return whether this differs from the last answer, and must be sent; keep it as the last."""
        news = (
            bool(data.records)
            or data.error_code != 0
            or data.high_watermark != self.high_watermark
            or data.log_start_offset != self.log_start_offset
        )
        # after an error everything is sent again
        self.high_watermark = data.high_watermark if not data.error_code else -1
        self.log_start_offset = data.log_start_offset
        return news


class Session:
    """The partitions one client fetches, those that had records last behind the others."""

    __slots__ = ("by_id", "created_ms", "epoch", "id", "partitions", "used_ms")

    def __init__(self, session_id: int, partitions: dict[Named, Wanted], by_id: bool, now_ms: int) -> None:
        self.id = session_id
        self.partitions = partitions
        self.by_id = by_id
        self.created_ms = self.used_ms = now_ms
        self.epoch = next_epoch(INITIAL_EPOCH)


Answers: TypeAlias = list[tuple[Named, Wanted, PartitionData]]


class Plan:
    """What one Fetch request reads, and how its answer is made.

    `session` is the one it continues, None for a request that stands alone; with `opens`, the answer opens
    one. `unknown` are the partitions that were unknown when the request came: they do not end its wait.
    `readable` returns whether a topic may be read; None for all.
    """

    __slots__ = ("by_id", "opens", "partitions", "readable", "session", "session_epoch", "unknown")

    def __init__(
        self, partitions: dict[Named, Wanted], by_id: bool, session: Session | None, opens: bool
    ) -> None:
        self.partitions = tuple(partitions.items())
        self.by_id = by_id
        self.session = session
        self.session_epoch = session.epoch if session is not None else 0
        self.opens = opens
        self.unknown: set[Named] | None = None
        self.readable: Callable[[str], bool] | None = None


class FetchSessions:
    """The sessions of one broker, at most `slots` of them.

    One more evicts the session that was used longest ago, if that was over STALE_MS ago; else, of the
    sessions older than that, the one with the fewest partitions, if it has no more than the new one. If none
    can be evicted, the new client gets no session and sends full requests.
    """

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._by_id: OrderedDict[int, Session] = OrderedDict()  # the one used longest ago first

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Session]:
        """Return the one used longest ago first."""
        return iter(self._by_id.values())

    def partitions_of(self, session_id: int) -> Iterable[Wanted]:
        """Return the partitions of a session; none of one that does not exist."""
        session = self._by_id.get(session_id)
        return () if session is None else tuple(session.partitions.values())

    def plan(self, request: FetchRequest, version: int, partitions: dict[Named, Wanted], now_ms: int) -> Plan:
        """Return what to read for a request that names `partitions`.

        Raise FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH or FETCH_SESSION_TOPIC_ID_ERROR.
        """
        by_id = version >= IDS_SINCE
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._by_id.pop(request.session_id, None)
            return Plan(partitions, by_id, None, opens=request.session_epoch == INITIAL_EPOCH)
        session = self._by_id.get(request.session_id)
        if session is None:
            raise Refused(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != request.session_epoch:
            raise Refused(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.by_id != by_id:
            raise Refused(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        for key, new in partitions.items():
            known = session.partitions.setdefault(key, new)
            known.ask = new.ask
        for topic in request.forgotten_topics_data:
            for partition in topic.partitions:
                session.partitions.pop((topic.topic_id if by_id else topic.topic, partition), None)
        if not session.partitions:
            del self._by_id[session.id]
            return Plan(partitions, by_id, None, opens=False)
        session.epoch = next_epoch(session.epoch)
        session.used_ms = now_ms
        self._by_id.move_to_end(session.id)
        return Plan(session.partitions, by_id, session, opens=False)

    def answered(self, plan: Plan, answers: Answers, now_ms: int) -> tuple[int, Answers]:
        """Return the session id for the answer, and the part of `answers` that it contains.

        Raise INVALID_FETCH_SESSION_EPOCH if the session went on while this request waited.
        """
        if plan.opens:
            if len(self._by_id) >= self._slots and not self._evict(len(answers), now_ms):
                return NO_SESSION, answers
            for _, p, data in answers:
                p.high_watermark, p.log_start_offset = data.high_watermark, data.log_start_offset
            session_id = NO_SESSION
            while session_id == NO_SESSION or session_id in self._by_id:
                session_id = secrets.randbelow(INT32_MAX)
            partitions = {key: p for key, p, _ in answers}
            self._by_id[session_id] = Session(session_id, partitions, plan.by_id, now_ms)
            return session_id, answers
        session = plan.session
        if session is None:
            return NO_SESSION, answers
        if session.epoch != plan.session_epoch:
            raise Refused(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        changed = []
        for answer in answers:
            key, p, data = answer
            if p.news_in(data):
                changed.append(answer)
                if data.records:
                    # the others come first the next time: this one must not fill it again
                    session.partitions[key] = session.partitions.pop(key)
        return session.id, changed

    def _evict(self, size: int, now_ms: int) -> bool:
        if not self._by_id:
            return False
        oldest = next(iter(self._by_id.values()))
        if now_ms - oldest.used_ms > STALE_MS:
            del self._by_id[oldest.id]
            return True
        grown_up = (s for s in self._by_id.values() if now_ms - s.created_ms > STALE_MS)
        least = min(grown_up, key=lambda session: (len(session.partitions), session.id), default=None)
        if least is None or size < len(least.partitions):
            return False
        del self._by_id[least.id]
        return True


def next_epoch(epoch: int) -> int:
    """Return the epoch of the request after one with this epoch."""
    return 1 if epoch == INT32_MAX else epoch + 1
