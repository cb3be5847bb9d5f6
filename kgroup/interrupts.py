"""Ctrl-C and termination that wait until what is being started is known to whoever ends it."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay SIGINT and SIGTERM until the block's end: between a start and recording what was started."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals end the main thread alone
        return
    arrived: list[int] = []

    def keep(number: int, frame: FrameType | None) -> None:
        arrived.append(number)

    before = {number: signal.signal(number, keep) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for signum in arrived:
        signal.raise_signal(signum)
