"""Library calls of unlimited duration, made in a thread and awaited for a limited time."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Pending(Generic[T]):
    """A call under way in a thread of its own; `result` waits for it.

    The main thread stays free for Ctrl-C, which a library in native code would keep waiting.
    """

    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self._done = threading.Event()
        self._value: T | None = None
        self._error: BaseException | None = None
        # A daemon: a call that never returns must not keep the process.
        threading.Thread(target=self._run, name="kgroup-storage", daemon=True).start()

    def _run(self) -> None:
        try:
            self._value = self._call()
        except BaseException as error:  # noqa: BLE001 - raised where the result is asked for
            self._error = error
        self._done.set()

    def result(self, timeout_s: float) -> T:
        """Return what the call returned, or its error; TimeoutError if it is not done in time."""
        if not self._done.wait(timeout_s):
            raise TimeoutError(f"no answer within {timeout_s:g} s")
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]


def within(timeout_s: float, call: Callable[[], T]) -> T:
    """Return what the call returns; TimeoutError if that takes longer."""
    return Pending(call).result(timeout_s)
