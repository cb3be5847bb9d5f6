"""The history of very many groups, read by a process of its own while this one describes them.

Either takes about as long, and each is work for one core (docs/decisions/0063-history-beside-describing.md).
"""

from __future__ import annotations

import gc
import multiprocessing
import signal
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any

from kgroup.admin.diagnose.recorded import Recorded, look_into
from kgroup.errors import KgroupError
from kgroup.history.outbox import Outbox, taken
from kgroup.history.sources.live import LiveTopic


class Ahead:
    """A process that reads partitions in their order, ahead of who asks for them.

    It has connections of its own, made as the topic's transport makes them.
    """

    def __init__(self, topic: LiveTopic, by_partition: Mapping[int, Sequence[str]]) -> None:
        context = multiprocessing.get_context("spawn")  # fork would copy what other threads hold
        self._from, theirs = context.Pipe(duplex=False)
        work = sorted(by_partition.items())
        self._process = context.Process(target=_work, args=(theirs, topic, work), daemon=True)
        self._process.start()
        theirs.close()

    def look_into(self, number: int) -> dict[str, Recorded]:
        """What is recorded of the groups of a partition; KgroupError when it cannot be read.

        Partitions are asked for in their order; one passed over is not told any more.
        """
        while True:
            told, found = self._next()
            if told < number:
                continue
            if isinstance(found, Exception):
                raise found
            assert told == number, f"{number} was asked for behind {told}"
            return found

    def _next(self) -> tuple[int, dict[str, Recorded] | Exception]:
        message: Any = taken(self._from, "the process that reads the history")
        return message  # type: ignore[no-any-return]

    def close(self) -> None:
        """End the process, whatever it is at."""
        self._process.terminate()
        self._process.join()
        self._from.close()


def _work(connection: Connection, topic: LiveTopic, work: Sequence[tuple[int, Sequence[str]]]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started this ends it
    gc.disable()  # many objects, no cycles
    outbox = Outbox(connection)
    for number, group_ids in work:
        found: dict[str, Recorded] | Exception
        try:
            found = look_into(topic, number, group_ids)
        except KgroupError as error:
            found = error
        except Exception as error:
            # A mistake of ours is shown by who shows all others.
            found = error
        outbox.put((number, found))
    outbox.flush()
