"""A bar on stderr while a long command works; only a terminal shows it."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kgroup.cli.env.invocation import Env

Done = Callable[[int], None]


@contextmanager
def bar(env: Env, what: str, total: int | None, least: int = 0, *, of_bytes: bool = False) -> Iterator[Done]:
    """Show how many of `total` (None: unknown) are done, as calls count; nothing for fewer than `least`."""
    if env.quiet or (total or least) < least or not sys.stderr.isatty():
        yield lambda count: None
        return
    from rich import progress
    from rich.console import Console

    counted = (progress.MofNCompleteColumn(), progress.TimeElapsedColumn())
    moved = (progress.DownloadColumn(), progress.TransferSpeedColumn(), progress.TimeRemainingColumn())
    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        *(moved if of_bytes else counted),
    )
    with progress.Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(what, total=total)
        yield lambda count: shown.advance(task, count)
