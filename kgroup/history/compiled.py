"""Which of kgroup's loops run compiled: what setup.py compiles, or the same sources as plain Python."""

import importlib
import pkgutil
from importlib.machinery import EXTENSION_SUFFIXES

LOOPS = {"reading logs": "kgroup.history.decode"}
"""Everything setup.py may compile, by purpose; a test holds the two equal."""
COMPILED = "compiled"


def runs_as(package: str) -> str:
    """Return `COMPILED`, plain Python, or how much is compiled, of the modules as imported here."""
    files = [str(importlib.import_module(name).__file__) for name in modules(package)]
    compiled = sum(file.endswith(tuple(EXTENSION_SUFFIXES)) for file in files)
    if compiled == len(files):
        return COMPILED
    return f"{compiled} of {len(files)} modules compiled" if compiled else "plain Python"


def modules(package: str) -> list[str]:
    """Return the modules of a package by their full names, without the package itself."""
    root = importlib.import_module(package)
    return sorted(f"{package}.{module.name}" for module in pkgutil.iter_modules(root.__path__))
