"""How kgroup is built: by setuptools, with mypyc where KGROUP_COMPILE=1 asks for compiled loops.

Without that variable neither mypy nor a C compiler is wanted by anything. `setup.py` says what is compiled.
With SOURCE_DATE_EPOCH two builds of the same files are equal, byte for byte, wherever they are made.
"""

import gzip
import os
import shutil
import tarfile
from collections.abc import Mapping
from pathlib import Path

from setuptools import build_meta
from setuptools.build_meta import (
    build_editable,
    build_wheel,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]
COMPILER = "mypy>=2.4,<3"


def build_sdist(sdist_directory: str, config_settings: Mapping[str, str] | None = None) -> str:
    """Write the sdist; setuptools would store the build's time and user, and the modes of the checkout."""
    # setuptools adds what the list of an earlier build names.
    shutil.rmtree("kgroup.egg-info", ignore_errors=True)
    name: str = build_meta.build_sdist(sdist_directory, config_settings)
    if (moment := os.environ.get("SOURCE_DATE_EPOCH")) is not None:
        _level(Path(sdist_directory, name), int(moment))
    return name


def get_requires_for_build_wheel(config_settings: Mapping[str, str] | None = None) -> list[str]:
    """What a wheel is built with, beside setuptools."""
    # setuptools would run setup.py to find out, which imports what is only being asked for.
    return [COMPILER] if os.environ.get("KGROUP_COMPILE") == "1" else []


def get_requires_for_build_editable(config_settings: Mapping[str, str] | None = None) -> list[str]:
    """What an editable install is built with; its loops are compiled in place, by `make setup`."""
    return []


def _level(sdist: Path, moment: int) -> None:
    """Write the archive again with one time, no owner, and no right that the account's umask decides."""

    def levelled(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.mtime, member.uid, member.gid, member.uname, member.gname = moment, 0, 0, "", ""
        member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
        member.pax_headers = {}
        return member

    made = sdist.rename(sdist.with_suffix(".made"))
    with (
        tarfile.open(made) as given,
        sdist.open("wb") as file,
        gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=moment) as packed,
        tarfile.open(fileobj=packed, mode="w") as taken,
    ):
        for member in sorted(given.getmembers(), key=lambda each: each.name):
            taken.addfile(levelled(member), given.extractfile(member) if member.isfile() else None)
    made.unlink()
