"""The package as one zip file, which Spark hands to its executors (`addPyFile`, `--py-files`)."""

from __future__ import annotations

import zipfile
from pathlib import Path

import kgroup

_WHEN = (1980, 1, 1, 0, 0, 0)


def build_package(target: Path) -> Path:
    """Write kgroup's own modules into the zip file `target`; the same modules give the same bytes.

    What kgroup imports (pyarrow, numpy, google-crc32c, cramjam) must be on the executors already.
    """
    root = Path(kgroup.__file__).parent
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(root.rglob("*.py")):
            name = str(Path("kgroup") / path.relative_to(root))
            archive.writestr(zipfile.ZipInfo(name, _WHEN), path.read_bytes(), zipfile.ZIP_DEFLATED)
    return target
