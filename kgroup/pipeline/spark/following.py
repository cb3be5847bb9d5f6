"""Runs repeated until interrupted: transient failures do not end them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from kgroup.errors import KgroupError, StorageUnreachable, Unreachable
from kgroup.pipeline.spark.session import first_line, is_spark

if TYPE_CHECKING:
    from pyspark import SparkContext

LONGEST_S = 60.0
R = TypeVar("R")


def follow(
    once: Callable[[], R],
    *,
    pause_s: float,
    report: Callable[[R], None],
    note: Callable[[str], None],
    sleep: Callable[[float], None],
    passes: Callable[[Exception], bool],
) -> NoReturn:
    """Call `once` repeatedly, `pause_s` apart, and pass its result to `report`; until interrupted.

    A failure that `passes` is noted and retried, at growing intervals up to `LONGEST_S`. Any failure before
    the first successful run is raised, since an address may be wrong; and so is any other failure.
    """
    begun, failures = False, 0
    while True:
        try:
            report(once())
            begun, failures = True, 0
        except Exception as error:
            if not begun or not passes(error):
                raise
            failures += 1
            said = str(error) if isinstance(error, KgroupError) else f"Spark: {first_line(error)}"
            note(f"{said}; nothing was written, the next run tries again")
        sleep(pause_s if not failures else max(pause_s, min(LONGEST_S, pause_s * 2**failures)))


def passes_by_itself(context: SparkContext, *others: type[KgroupError]) -> Callable[[Exception], bool]:
    """Return a test whether a failure is transient: no answer, or tasks that failed on a live Spark.

    Errors of the kinds `others` are transient too. What tasks find wrong with their input, they find again,
    and it is reported each time.
    """

    def passes(error: Exception) -> bool:
        if isinstance(error, KgroupError):
            return isinstance(error, (Unreachable, StorageUnreachable, *others))
        if not is_spark(error):
            return False
        running: Any = context
        try:
            return not running._jsc.sc().isStopped()
        except Exception:
            return False

    return passes
