"""The zip for Spark's executors: the same bytes each time, and what an executor has that got it."""

import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

import kgroup
from kgroup.pipeline.spark.package import build_package

SOURCE = Path(kgroup.__file__).parent


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_package(tmp_path_factory.mktemp("package") / "kgroup.zip")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of packages with kgroup in it, plain."""
    without = shutil.ignore_patterns("__pycache__", *(f"*{suffix}" for suffix in EXTENSION_SUFFIXES))
    shutil.copytree(SOURCE, tmp_path / "kgroup", ignore=without)
    return tmp_path


def runs(package: Path, *others: Path) -> Path:
    """Where an executor with these folders has its kgroup from; Spark puts the zip in front."""
    paths = [str(package), *(str(other) for other in others)]
    code = f"import sys; sys.path[:0] = {paths!r}; import kgroup.domain as m; print(m.__file__)"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True
    )
    return Path(done.stdout.strip()).parents[1]


def compile_in(site: Path) -> None:
    """What the executor's interpreter would load; nobody loads it here."""
    (site / "kgroup" / "history" / f"loops__mypyc{EXTENSION_SUFFIXES[0]}").touch()


def test_the_same_modules_give_the_same_bytes(package: Path, tmp_path: Path) -> None:
    assert package.read_bytes() == build_package(tmp_path / "again.zip").read_bytes()


def test_an_executor_without_kgroup_runs_the_zip(package: Path) -> None:
    assert runs(package) == package


def test_an_executor_with_a_plain_kgroup_runs_the_zip(package: Path, site: Path) -> None:
    assert runs(package, site) == package


def test_an_executor_with_the_same_kgroup_compiled_runs_its_own(package: Path, site: Path) -> None:
    compile_in(site)
    assert runs(package, site) == site


def test_an_executor_with_another_kgroup_compiled_runs_the_zip(package: Path, site: Path) -> None:
    compile_in(site)
    with (site / "kgroup" / "domain.py").open("a") as file:
        file.write("\nNEWER = True\n")
    assert runs(package, site) == package
