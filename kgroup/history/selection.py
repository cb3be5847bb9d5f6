"""Which groups of a log are decoded, and how their commits are combined."""

from collections.abc import Callable, Iterable
from typing import TypedDict


class Choice(TypedDict, total=False):
    """The default is all groups, and commits in runs. It is pickled where other processes decode."""

    names: Iterable[str] | None
    wanted: Callable[[str], bool] | None
    runs: bool
