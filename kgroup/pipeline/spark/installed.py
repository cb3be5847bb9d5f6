"""Whether an executor has this very kgroup installed, compiled: then it runs that one, not the zip.

Nothing but the standard library is imported here: the zip carries this file beside kgroup, to be asked first.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path


def digest(package: Path) -> str:
    """What the sources in the folder `package` come to; the same files give the same, wherever they lie."""
    total = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        source = path.read_bytes()
        total.update(f"{path.relative_to(package).as_posix()} {len(source)}\n".encode())
        total.update(source)
    return total.hexdigest()


def path_of(wanted: str, shipped: Iterable[str]) -> list[str]:
    """Where submodules of kgroup are to be looked for: an installed kgroup that is compiled, or `shipped`.

    `wanted` is the digest of what was shipped. One of other sources would not understand what it is sent.
    """
    for entry in sys.path:
        package = Path(entry) / "kgroup"
        if package.is_dir() and _compiled(package) and digest(package) == wanted:
            return [str(package)]
    return list(shipped)


def _compiled(package: Path) -> bool:
    """Whether this interpreter can load what was compiled there."""
    return any(next(package.rglob(f"*{suffix}"), None) for suffix in EXTENSION_SUFFIXES)
