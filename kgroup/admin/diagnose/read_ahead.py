"""The history of very many groups, read by a separate process while this one describes them.

Either takes about as long, and each is work for one core (docs/decisions/0066-what-each-trick-is-worth.md).
"""

import contextlib
import gc
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from threading import Thread
from typing import Any

from kgroup.admin.diagnose.group_records import Recorded, look_into
from kgroup.errors import KgroupError
from kgroup.history.sources.live import LiveTopic
from kgroup.history.worker_messages import Outbox, taken

Work = tuple[LiveTopic, Sequence[tuple[int, Sequence[str]]]]

_BEGIN = f"import {__name__} as ahead; ahead.work()"


class Ahead:
    """A process that reads partitions in order, ahead of their use.

    It has its own connections, made as the topic's transport makes them.
    """

    def __init__(self, topic: LiveTopic, by_partition: Mapping[int, Sequence[str]]) -> None:
        self._connection, theirs = Pipe()
        # Not one of multiprocessing's: those run the caller's main module again, which may be anything. In a
        # session of its own: the parent ends it on Ctrl-C.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _BEGIN, str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        theirs.close()
        work: Work = topic, sorted(by_partition.items())
        # More than a pipe holds, and it reads only once it has started.
        Thread(target=_give, args=(self._connection, work), daemon=True).start()

    def look_into(self, number: int) -> dict[str, Recorded]:
        """Return the records of a partition's groups; raise KgroupError when it cannot be read.

        Request partitions in their order; one that was skipped cannot be read any more.
        """
        while True:
            message: Any = taken(self._connection, "the process that reads the history")
            reported: int
            recorded: dict[str, Recorded] | Exception
            reported, recorded = message
            if reported < number:
                continue
            if isinstance(recorded, Exception):
                raise recorded
            assert reported == number, f"{number} was requested after {reported}"
            return recorded

    def close(self) -> None:
        """End the process, at any point of its work."""
        self._process.terminate()
        self._process.wait()
        self._connection.close()


def _give(to: Connection, work: Work) -> None:
    # A process that has ended is reported where its answers are missing.
    with contextlib.suppress(OSError):
        to.send(work)


def work() -> None:
    """Run that process: its work and its answers go through the pipe that is its argument."""
    gc.disable()  # many objects, no cycles
    if sys.platform == "win32":
        return  # no end of a pipe is passed on there
    connection = Connection(int(sys.argv[1]))
    topic, partitions = connection.recv()
    outbox = Outbox(connection)
    for number, group_ids in partitions:
        recorded: dict[str, Recorded] | Exception
        try:
            recorded = look_into(topic, number, group_ids)
        except KgroupError as error:
            recorded = error
        except Exception as error:
            # The parent, which reports all other failures, reports our bugs too.
            recorded = error
        outbox.put((number, recorded))
    outbox.flush()
    os._exit(0)  # skip freeing all that was read, object by object
