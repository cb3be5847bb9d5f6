"""Something that a thread of its own does again and again while a block runs."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def repeating(
    act: Callable[[], object], every_s: float, name: str, *, join_s: float | None = None
) -> Iterator[None]:
    """Call `act` so many seconds after the block begins, and again so long after each call, until it ends.

    The call that runs at the end is waited for, `join_s` at most. An exception of `act` ends the calls.
    """
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(every_s):
            act()

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(join_s)
