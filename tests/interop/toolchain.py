"""What the interop tests build once and keep in the git-ignored `.cache/interop/` of the checkout.

Each product is stamped with a hash of its sources, so a build happens only when they changed, and
under a file lock, so that several test runs can share the cache. `python -m tests.interop.toolchain`
builds all of it: a first download may take longer than a test is allowed to.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = HERE.parents[1] / ".cache" / "interop"


def missing(*programs: str) -> list[str]:
    """The named programs that are not on PATH."""
    return [program for program in programs if shutil.which(program) is None]


def kafka_jars() -> Path:
    """Folder with Kafka's broker, tools and clients and all they need at run time (from Maven)."""
    pom = HERE / "java" / "pom.xml"
    with locked():
        return built("jars", [pom], lambda to: copy_jars(pom, to))


def kafka_classpath() -> str:
    """Class path of Kafka's broker and tools, as `java -cp` takes it."""
    return f"{kafka_jars()}{os.sep}*"


def release_jars(version: str) -> Path:
    """Folder with the broker of one release, such as 4.4.0, and all it needs at run time (from Maven).

    Without tools: those of 4.4.0 are not published.
    """
    pom, which = HERE / "java" / "release.xml", f"-Dkafka.version={version}"
    with locked():
        return built(f"release-{version}", [pom], lambda to: copy_jars(pom, to, which))


def driver_classpath() -> str:
    """Class path of our Java driver together with Kafka's jars."""
    jars = kafka_classpath()
    folders = (HERE / "java" / "src", HERE / "foreign" / "java" / "src" / "clients")
    sources = sorted(source for folder in folders for source in folder.rglob("*.java"))
    with locked():
        made_from = [HERE / "java" / "pom.xml", *sources]
        classes = built("classes", made_from, lambda to: javac(jars, sources, to))
    # An archive of classes is for what begins with the jars.
    return f"{jars}{os.pathsep}{classes}"


def java_project(folder: Path, kafka: str | None = None) -> str:
    """Class path of a Java project that stands by itself: the jars its pom.xml names, and its classes.

    With `kafka` those jars of that version, and the sources in the folder of that name as well.
    """
    name, pom, sources = folder.parent.name, folder / "pom.xml", sorted((folder / "src").rglob("*.java"))
    options = []
    if kafka is not None:
        name, options = f"{name}-{kafka}", [f"-Dkafka.version={kafka}"]
        sources += sorted((folder / kafka).rglob("*.java"))
    with locked():
        jars = built(f"{name}-jars", [pom], lambda to: copy_jars(pom, to, *options))
        path = f"{jars}{os.sep}*"
        classes = built(f"{name}-classes", [pom, *sources], lambda to: javac(path, sources, to))
    return f"{classes}{os.pathsep}{path}"


def go_driver() -> Path:
    """The executable with franz-go, sarama and kafka-go."""
    folder = HERE / "go"
    sources = [folder / "go.mod", folder / "go.sum", *sorted(folder.glob("*.go"))]
    with locked():
        return built("go", sources, lambda to: _go_build(folder, to)) / "driver"


@contextlib.contextmanager
def locked() -> Iterator[None]:
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def built(name: str, sources: list[Path], build) -> Path:  # type: ignore[no-untyped-def]
    """`CACHE/name` as built from exactly these sources; half a build is never kept."""
    product, stamp = CACHE / name, CACHE / f"{name}.stamp"
    digest = hashlib.sha256(b"\0".join(source.read_bytes() for source in sources)).hexdigest()
    if product.is_dir() and stamp.is_file() and stamp.read_text() == digest:
        return product
    stamp.unlink(missing_ok=True)
    shutil.rmtree(product, ignore_errors=True)
    product.mkdir(parents=True)
    build(product)
    stamp.write_text(digest)
    return product


def copy_jars(pom: Path, to: Path, *options: str) -> None:
    """Copy the jars that a project names, and all they need at run time, from Maven."""
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={to}"]
    run(["mvn", "-q", "-B", "-f", str(pom), *options, *goal], to)


def javac(jars: str, sources: list[Path], to: Path) -> None:
    """Compile sources into a folder, with these jars."""
    lint = "-Xlint:all,-processing,-path"
    run(["javac", "--release", "17", lint, "-cp", jars, "-d", str(to), *map(str, sources)], to)


def npm(sources: list[Path], to: Path) -> None:
    """Copy a package.json and what belongs to it, and install what it names."""
    for source in sources:
        shutil.copy(source, to)
    run(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock"], to)


def _go_build(folder: Path, to: Path) -> None:
    run(["go", "build", "-o", str(to / "driver"), "."], folder)


def run(command: list[str], cwd: Path) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        said = f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        raise RuntimeError(f"{command[0]} failed ({done.returncode}):\n{said}")


def main() -> str | None:
    """Build everything; what is missing from PATH if something is."""
    if absent := missing("java", "javac", "mvn", "go"):
        return f"the interop tests need {', '.join(absent)} on PATH"
    driver_classpath()
    for kafka in ("4.3.1", "4.4.0"):
        release_jars(kafka)
        java_project(HERE.parent / "differential" / "java", kafka)
    java_project(HERE.parent / "differential" / "share" / "java")
    go_driver()
    from .archives import keep_classes

    keep_classes()
    return None


if __name__ == "__main__":
    sys.exit(main())
