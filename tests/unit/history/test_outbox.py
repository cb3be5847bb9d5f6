"""Messages of a process that works ahead: all that it sent are taken, and its end is told as what it is."""

import os
import struct
from multiprocessing import Pipe

import pytest

from kgroup.errors import StorageError
from kgroup.history.worker_messages import WAITING_BYTES, Outbox, taken


def test_what_was_sent_is_taken_in_order():
    ours, theirs = Pipe(duplex=False)
    outbox = Outbox(theirs)
    large = b"x" * (WAITING_BYTES // 4)
    for message in ("first", large, large, {"last": 1}):
        outbox.put(message)
    assert [taken(ours, "it") for _ in range(4)] == ["first", large, large, {"last": 1}]
    outbox.flush()


@pytest.mark.parametrize("sent", [b"", struct.pack("!i", 1000) + b"the beginning of a message"])
def test_a_process_that_was_killed_between_messages_or_amid_one(sent):
    ours, theirs = Pipe(duplex=False)
    os.write(theirs.fileno(), sent)
    theirs.close()
    with pytest.raises(StorageError, match="the reader was killed"):
        taken(ours, "the reader")
