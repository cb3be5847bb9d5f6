"""Finds out whether an executor has this same kgroup installed, compiled, to use instead of the zip.

Only the standard library is imported here: the zip carries this file next to kgroup, to be run first.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path


def digest(package: Path) -> str:
    """Return a digest of the sources in the folder `package`; it does not depend on the folder's place."""
    total = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        source = path.read_bytes()
        total.update(f"{path.relative_to(package).as_posix()} {len(source)}\n".encode())
        total.update(source)
    return total.hexdigest()


def path_of(expected: str, shipped: Iterable[str]) -> list[str]:
    """Return where to look for submodules of kgroup: an installed and compiled kgroup, or `shipped`.

    `expected` is the digest of what was shipped. Other sources could not read what they are sent.
    """
    for entry in sys.path:
        package = Path(entry) / "kgroup"
        # Only what was compiled for this interpreter can be loaded.
        compiled = (package.rglob(f"*{suffix}") for suffix in EXTENSION_SUFFIXES)
        if package.is_dir() and any(next(paths, None) for paths in compiled) and digest(package) == expected:
            return [str(package)]
    return list(shipped)
