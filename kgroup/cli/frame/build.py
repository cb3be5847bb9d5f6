"""What is running, for `kgroup --version -v`: the interpreter, where kgroup lies, which loops run."""

import platform
import sys
from collections.abc import Iterator
from pathlib import Path

import kgroup
from kgroup.history.built import LOOPS, runs_as


def told() -> Iterator[str]:
    """One line a fact, in an order that stays."""
    yield f"kgroup {kgroup.__version__}"
    yield f"python {platform.python_version()} ({platform.python_implementation()}, {sys.executable})"
    yield f"from {Path(kgroup.__file__).parent}"
    for purpose, package in LOOPS.items():
        yield f"{purpose}: {runs_as(package)} ({package})"
