"""Ask several brokers at the same time, so that the slowest alone determines the time."""

from collections.abc import Callable, Mapping
from threading import Thread
from typing import TypeVar

from kgroup.errors import KgroupError

K = TypeVar("K")
T = TypeVar("T")


def together(works: Mapping[K, Callable[[], T]], *, concurrent: bool) -> dict[K, T | KgroupError]:
    """Return the result of each work, or the KgroupError it raised, in the order given.

    Each runs in its own thread where the transport is `concurrent`. Any other exception is raised here, once
    all have ended.
    """
    if not concurrent or len(works) < 2:
        return {key: _result_of(work) for key, work in works.items()}

    done: dict[K, T | KgroupError] = {}
    failed: list[BaseException] = []

    def run(key: K, work: Callable[[], T]) -> None:
        try:
            done[key] = _result_of(work)
        except BaseException as error:
            failed.append(error)

    # Daemons: after Ctrl-C kgroup does not wait for a broker that does not answer.
    threads = [Thread(target=run, args=item, daemon=True) for item in works.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    return {key: done[key] for key in works}


def _result_of(work: Callable[[], T]) -> T | KgroupError:
    try:
        return work()
    except KgroupError as error:
        return error
