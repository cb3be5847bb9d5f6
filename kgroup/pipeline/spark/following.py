"""Runs repeated for as long as somebody wants them: what passes by itself does not end them."""

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
    tell: Callable[[R], None],
    note: Callable[[str], None],
    sleep: Callable[[float], None],
    passes: Callable[[Exception], bool],
) -> NoReturn:
    """Call `once` again and again, with `pause_s` in between, and `tell` what it returns; until interrupted.

    A failure that `passes` is noted and tried again, ever later up to `LONGEST_S`. Whatever fails before a
    first run has gone well is raised, since an address may be wrong; and so is any other failure.
    """
    begun, failures = False, 0
    while True:
        try:
            tell(once())
            begun, failures = True, 0
        except Exception as error:
            if not begun or not passes(error):
                raise
            failures += 1
            note(f"{_said(error)}; nothing was written, the next run tries again")
        sleep(pause_s if not failures else max(pause_s, min(LONGEST_S, pause_s * 2**failures)))


def _said(error: Exception) -> str:
    return str(error) if isinstance(error, KgroupError) else f"Spark: {first_line(error)}"


def passes_by_itself(context: SparkContext, *others: type[KgroupError]) -> Callable[[Exception], bool]:
    """Whether a failure may be over at the next run: no answer, or tasks that failed on a live Spark.

    Errors of the kinds `others` pass too. What tasks find wrong with their input, they find again, and it is
    told each time.
    """

    def passes(error: Exception) -> bool:
        if isinstance(error, KgroupError):
            return isinstance(error, (Unreachable, StorageUnreachable, *others))
        return is_spark(error) and _lives(context)

    return passes


def _lives(context: SparkContext) -> bool:
    running: Any = context
    try:
        return not running._jsc.sc().isStopped()
    except Exception:
        return False
