"""The examples of docs/testing.md for other languages, as their own runners run them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interop.toolchain import CACHE, built, copy_jars, locked, missing, run
from tests.sampled import in_full

pytestmark = pytest.mark.interop

EXAMPLES = Path(__file__).parents[2] / "examples" / "testing"
ENVIRONMENT = {**os.environ, "KGROUP": str(Path(sys.executable).with_name("kgroup"))}
WITHIN_S = 500


def ran(command: list[str], folder: Path) -> str:
    """What a runner of tests says that passed."""
    done = subprocess.run(
        command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=WITHIN_S, check=False
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-6000:]
    return done.stdout + done.stderr


def need(*programs: str) -> None:
    if absent := missing(*programs):
        pytest.skip(f"needs {', '.join(absent)} on PATH")


def test_java_with_junit() -> None:
    need("java", "javac", "mvn")
    pom, sources = EXAMPLES / "java" / "pom.xml", sorted((EXAMPLES / "java").rglob("*.java"))
    with locked():
        jars = built("testing-java-jars", [pom], lambda to: copy_jars(pom, to))
        path = f"{jars}{os.sep}*"
        classes = built("testing-java", [pom, *sources], lambda to: compiled(path, sources, to))
    console = next(jars.glob("junit-platform-console-standalone-*.jar"))
    said = ran(
        ["java", "-jar", str(console), "execute", "-cp", class_path(classes, jars), "--scan-class-path"],
        CACHE,
    )
    assert "4 tests successful" in said and "0 tests failed" in said, said


def compiled(path: str, sources: list[Path], to: Path) -> None:
    run(["javac", "--release", "17", "-cp", path, "-d", str(to), *map(str, sources)], to)


def class_path(classes: Path, jars: Path) -> str:
    """The classes and the client; the console brings JUnit."""
    return os.pathsep.join(
        [str(classes), *(str(jar) for jar in jars.glob("*.jar") if "junit" not in jar.name)]
    )


@in_full("the test in Java starts and asks the kit in the same way")
def test_go() -> None:
    need("go")
    said = ran(["go", "test", "-count=1", "-v", "./..."], EXAMPLES / "go")
    assert said.count("--- PASS") == 2, said


@in_full("the test in Java starts and asks the kit in the same way")
def test_javascript() -> None:
    need("node", "npm")
    sources = [EXAMPLES / "js" / "package.json", EXAMPLES / "js" / "rebalance.test.js"]
    with locked():
        folder = built("testing-js", sources, lambda to: installed(sources, to))
    said = ran(["node", "--test", "rebalance.test.js"], folder)
    assert "pass 2" in said, said


def installed(sources: list[Path], to: Path) -> None:
    for source in sources:
        shutil.copy(source, to)
    run(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock"], to)
