"""`kgroup --version -v`: what runs, and whether that can be believed."""

import runpy
import sys
from pathlib import Path

import pytest

import kgroup
from kgroup.history.compiled import LOOPS, modules
from tests.ran import ran

ROOT = Path(__file__).parents[2]


def test_the_version_alone_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert ran(capsys, "--version").out == f"kgroup {kgroup.__version__}\n"


@pytest.mark.parametrize("typed", [("--version", "-v"), ("-v", "--version"), ("--version", "--verbose")])
def test_verbose_says_what_runs_and_from_where(
    capsys: pytest.CaptureFixture[str], typed: tuple[str, ...]
) -> None:
    done = ran(capsys, *typed)
    assert done.code == 0
    first, python, place, *loops = done.out.splitlines()
    assert first == f"kgroup {kgroup.__version__}"
    assert sys.executable in python
    assert place == f"from {Path(kgroup.__file__).parent}"
    compiled = [list((ROOT / package.replace(".", "/")).glob("*.so")) for package in LOOPS.values()]
    assert [line.split(": ")[1].startswith("compiled") for line in loops] == [
        bool(found) for found in compiled
    ]


def test_it_knows_all_that_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """setup.py compiles these modules and no others."""
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("KGROUP_COMPILE", raising=False)
    monkeypatch.setattr("setuptools.setup", lambda **_: None)
    compiled = runpy.run_path(str(ROOT / "setup.py"))["SOURCES"]
    named = {name.removesuffix(".py").replace("/", ".") for name in compiled}
    assert named == {name for package in LOOPS.values() for name in modules(package)}
