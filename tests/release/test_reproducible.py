"""Who builds the same commit elsewhere gets the same bytes."""

import os
import shutil
import subprocess
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.release.environment import DIST, KINDS, ROOT, WITHOUT_SETUP, built
from tests.sampled import FULL

pytestmark = [pytest.mark.release, pytest.mark.timeout(900)]
# Compiling takes more than a minute: CI compares the loops with those of the checkout, `make reproduce` all.
ELSEWHERE = {"TZ": "Asia/Tokyo", "LC_ALL": "C", "PYTHONHASHSEED": "7"}


def test_a_build_elsewhere_is_the_same(tmp_path: Path) -> None:
    """In another folder, at another time, under an account whose files nobody else may read."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, files.split("\0")):
        if (ROOT / name).exists():
            (tmp_path / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / name)
            (tmp_path / name).chmod((ROOT / name).stat().st_mode & 0o700)
    moment = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True)
    told = {"SOURCE_DATE_EPOCH": os.environ.get("SOURCE_DATE_EPOCH", moment.stdout.strip()), **ELSEWHERE}
    command = ["make", "dist" if FULL else "plain", *WITHOUT_SETUP]
    subprocess.run(command, cwd=tmp_path, env=os.environ | told, umask=0o077, check=True)
    made = {path.name: path.read_bytes() for path in (tmp_path / "dist").iterdir()}
    assert len(made) == (len(KINDS) if FULL else 2)
    assert [name for name, content in made.items() if (DIST / name).read_bytes() != content] == []


def test_compiled_loops_are_the_same_wherever_they_were_built() -> None:
    """`make setup` compiled them in the checkout, `make dist` in a folder that pip made."""
    with ZipFile(built("compiled")) as wheel:
        loops = {name: wheel.read(name) for name in wheel.namelist() if name.endswith(".so")}
    assert len(loops) > 5
    assert [name for name, content in loops.items() if (ROOT / name).read_bytes() != content] == []
