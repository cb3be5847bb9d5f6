"""The running build, for `kgroup --version -v`: the interpreter, kgroup's folder, which loops run."""

import platform
import sys
from collections.abc import Iterator
from pathlib import Path

import kgroup
from kgroup.history.compiled import LOOPS, runs_as


def lines() -> Iterator[str]:
    """Yield one line per fact, in a stable order."""
    yield f"kgroup {kgroup.__version__}"
    yield f"python {platform.python_version()} ({platform.python_implementation()}, {sys.executable})"
    yield f"from {Path(kgroup.__file__).parent}"
    for purpose, package in LOOPS.items():
        yield f"{purpose}: {runs_as(package)} ({package})"
