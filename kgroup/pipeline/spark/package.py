"""The package as one zip file, which Spark ships to its executors (`addPyFile`, `--py-files`)."""

from __future__ import annotations

import zipfile
from pathlib import Path

import kgroup
from kgroup.pipeline.spark import installed

_WHEN = (1980, 1, 1, 0, 0, 0)
# Appended to kgroup/__init__.py in the zip, which precedes whatever an executor has.
_ASK = """
from kgroup_installed import path_of as _path_of

__path__ = _path_of("{digest}", __path__)
"""


def build_package(target: Path) -> Path:
    """Write kgroup's own modules into the zip file `target`; the same modules give the same bytes.

    An executor with the same kgroup installed and compiled uses that instead. kgroup's imports (pyarrow,
    numpy, google-crc32c, cramjam) must be on the executors already.
    """
    root = Path(kgroup.__file__).parent
    sources = {
        f"kgroup/{path.relative_to(root).as_posix()}": path.read_bytes() for path in root.rglob("*.py")
    }
    sources["kgroup/__init__.py"] += _ASK.format(digest=installed.digest(root)).encode()
    sources["kgroup_installed.py"] = Path(installed.__file__).read_bytes()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, source in sorted(sources.items()):
            archive.writestr(zipfile.ZipInfo(name, _WHEN), source, zipfile.ZIP_DEFLATED)
    return target
