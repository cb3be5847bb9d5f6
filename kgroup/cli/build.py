"""What is running, for `kgroup --version -v`: the interpreter, where kgroup lies, which loops run."""

import importlib
import pkgutil
import platform
import sys
from collections.abc import Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import kgroup

# Whatever setup.py may compile, by what it is for; a test holds the two equal.
LOOPS = {"reading logs": "kgroup.history.decode"}


def told() -> Iterator[str]:
    """One line a fact, in an order that stays."""
    yield f"kgroup {kgroup.__version__}"
    yield f"python {platform.python_version()} ({platform.python_implementation()}, {sys.executable})"
    yield f"from {Path(kgroup.__file__).parent}"
    for purpose, package in LOOPS.items():
        yield f"{purpose}: {_runs_as(package)} ({package})"


def _runs_as(package: str) -> str:
    """Imports the modules, so what it says is what runs."""
    files = [str(importlib.import_module(name).__file__) for name in modules(package)]
    compiled = sum(file.endswith(tuple(EXTENSION_SUFFIXES)) for file in files)
    if compiled == len(files):
        return "compiled"
    return f"{compiled} of {len(files)} modules compiled" if compiled else "plain Python"


def modules(package: str) -> list[str]:
    """The modules of a package by their full names; not the package itself."""
    root = importlib.import_module(package)
    return sorted(f"{package}.{found.name}" for found in pkgutil.iter_modules(root.__path__))
