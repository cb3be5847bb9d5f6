"""Decoding on several cores: processes decode shares of logs, one fold takes their items in order.

Events do not depend on where a log was cut: the fold combines the spans of commits.
"""

from __future__ import annotations

import gc
import multiprocessing
import signal
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, Any

from kgroup.errors import KgroupError
from kgroup.history.decode.decoder import Decoder
from kgroup.history.log_items import BadRange, Item, Packed, Places, Seen, gap_between, packed, unpacked
from kgroup.history.selection import Choice
from kgroup.history.sources.chunks import Progress
from kgroup.history.sources.logs import SegmentLog
from kgroup.history.sources.splits import Split, SplitReader, plan_splits
from kgroup.history.worker_messages import Outbox, taken

if TYPE_CHECKING:
    from kgroup.history.worker_messages import Connection

MIN_BYTES = 48 << 20
"""Less than this is not worth a process of its own."""
_MAX_BYTES = 512 << 20
"""Items of more than this would not fit into memory, and all processes but one would wait."""
_ITEMS_AT_ONCE = 200


_COUNTS = tuple(field.name for field in fields(Seen))


@dataclass(frozen=True, slots=True)
class Begun:
    """First message of a share that is not empty: where its first batch begins, and its time (ms)."""

    offset: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class Done:
    """Last message of a share."""

    seen: Seen
    bad: list[BadRange]


Message = Begun | list[Packed] | int | Done
"""A message of a process; a number is that many bytes read."""


def decoded(split: Split, choice: Choice, before: Seen | None = None) -> Iterator[Message]:
    """Yield everything in a split; StorageError if it cannot be read.

    `before`: continue after what was seen; what was read already is skipped, and `Done` counts all of it.
    """
    reader, decoder = SplitReader(split, chunk_bytes=0), Decoder(**choice)
    if before is not None:
        for name in _COUNTS:
            setattr(decoder, name, getattr(before, name))
    begun = before is not None
    items: list[Packed] = []
    for chunk, headers in reader.chunks():
        if not begun:
            yield Begun(headers[0].base_offset, headers[0].base_timestamp_ms)
            begun = True
        yield headers[-1].end - headers[0].position
        for item in decoder.feed(chunk, headers):
            items.append(packed(item))
            if len(items) == _ITEMS_AT_ONCE:
                yield items
                items = []
    yield [*items, *map(packed, decoder.flush())]
    yield Done(Seen(*(getattr(decoder, name) for name in _COUNTS)), reader.bad)


@dataclass(frozen=True, slots=True)
class _Job:
    """A process that works on a share."""

    split: Split
    process: BaseProcess
    connection: Connection

    def end(self) -> None:
        self.process.terminate()
        self.process.join()
        self.connection.close()


class Workers:
    """Processes that decode segments, a share each; a context manager that ends them, also on Ctrl-C.

    Items are taken in the order of the log, so those of a later share wait in its process, at most
    `WAITING_BYTES`: memory is bounded by that and what its decoder keeps.
    """

    def __init__(self, logs: Sequence[SegmentLog], jobs: int, choice: Choice) -> None:
        size = sum(log.size for log in logs)
        self.shares = plan_splits(logs, min(_MAX_BYTES, max(MIN_BYTES, -(-size // jobs))))
        # A partition's first share reports what is known to be damaged.
        for log in logs:
            log.bad = []
        self.choice = choice
        self._next = 0
        self._places: Places = {}
        # Fork would copy what other threads hold, such as a progress bar's lock.
        if sys.platform == "win32":
            self._context = multiprocessing.get_context("spawn")
        else:
            self._context = multiprocessing.get_context("forkserver")
            self._context.set_forkserver_preload([__name__])
        self._running: deque[_Job] = deque()
        for _ in range(jobs):
            self._start()

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        for job in self._running:
            job.end()

    def items_of(self, log: SegmentLog, seen: Seen, progress: Progress | None = None) -> Iterator[Item]:
        """Yield the items of one log; request logs in order. `seen` and `log.bad` grow along."""
        while self._running and self._running[0].split.part == log.partition:
            job = self._running[0]
            yield from self._share(job, log, seen, progress)
            job.end()
            self._running.popleft()
            self._start()

    def _share(self, job: _Job, log: SegmentLog, seen: Seen, progress: Progress | None) -> Iterator[Item]:
        while True:
            message: Any = taken(job.connection, "a process that decodes")
            if isinstance(message, KgroupError):
                raise message
            if isinstance(message, Done):
                log.bad += message.bad
                seen.follow(message.seen)
                return
            if isinstance(message, list):
                yield from (unpacked(item, self._places) for item in message)
            elif isinstance(message, int):
                if progress is not None:
                    progress(message)
            elif message.offset < seen.next_offset:
                yield from self._overlapping(job.split, log, seen)
                return
            elif gap := gap_between(seen.next_offset, message.offset, message.timestamp_ms):
                yield gap

    def _overlapping(self, split: Split, log: SegmentLog, seen: Seen) -> Iterator[Item]:
        """Decode a share that copies earlier batches, as one reader would."""
        for message in decoded(split, self.choice, seen):
            if isinstance(message, Done):
                log.bad += message.bad
                for name in _COUNTS:
                    setattr(seen, name, getattr(message.seen, name))
            elif isinstance(message, list):
                yield from (unpacked(item, self._places) for item in message)

    def _start(self) -> None:
        """Start on the next share, if there is one."""
        if self._next == len(self.shares):
            return
        split = self.shares[self._next]
        self._next += 1
        ours, theirs = self._context.Pipe(duplex=False)
        process = self._context.Process(target=_work, args=(theirs, split, self.choice), daemon=True)
        process.start()
        theirs.close()
        self._running.append(_Job(split, process, ours))


def _work(connection: Connection, split: Split, choice: Choice) -> None:
    """Decode one share, message by message; the last message is an error, if there is one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its workers, and reports it once
    gc.disable()  # many objects, no cycles
    outbox = Outbox(connection)
    try:
        for message in decoded(split, choice):
            outbox.put(message)
    except KgroupError as error:
        outbox.put(error)
    outbox.flush()
