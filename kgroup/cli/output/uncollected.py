"""Stretches of a command in which Python does not look for circles of objects."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Stops that search: a replay makes many objects, and rows are many, and there is no circle among them.

    What was made is not searched afterwards either: the process ends with it.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.freeze()
            gc.enable()
