"""The foreign clients, fetched with Maven and npm and built into `.cache/interop/` (see toolchain.py).

`python -m tests.interop.foreign.builds` builds those that `chosen` asks for.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.kafka_release.releases import LAST
from tests.sampled import FULL

from ..toolchain import built, copy_jars, go_driver, locked, missing, npm, run

HERE = Path(__file__).resolve().parent
SAMPLE = (LAST["2.3"], LAST["4.0"])
LEFT_OUT = {"2.4", "2.5", "2.6", "2.7", "4.4"}
EVERY = tuple(release for minor, release in LAST.items() if minor not in LEFT_OUT)


def chosen() -> tuple[str, ...]:
    """Versions of the Java client: a sample, or in full one of each minor."""
    return EVERY if FULL else SAMPLE


def java_driver(version: str) -> str:
    """Class path of the Java driver with the client of one version, and nothing else of Kafka."""
    jars = _client_jars(version)
    oldest = _client_jars(EVERY[0])
    sources = sorted((HERE / "java" / "src" / "clients").rglob("*.java"))
    with locked():
        made_from = [HERE / "java" / "clients.xml", *sources]
        classes = built("foreign-classes", made_from, lambda to: _javac(oldest, sources, to))
    return f"{classes}{os.pathsep}{jars}{os.sep}*"


APPS = "4.3.1"


def apps(version: str = APPS) -> str:
    """Class path of Kafka Streams and Kafka Connect of a version, and of our programs for them."""
    pom, sources = HERE / "java" / "apps.xml", sorted((HERE / "java" / "src" / "streams").rglob("*.java"))
    suffix = "" if version == APPS else f"-{version}"
    with locked():
        jars = built(
            f"foreign-apps{suffix}", [pom], lambda to: copy_jars(pom, to, f"-Dclient.version={version}")
        )
        classes = built(f"foreign-streams{suffix}", [pom, *sources], lambda to: _javac(jars, sources, to))
    return f"{classes}{os.pathsep}{jars}{os.sep}*"


def js_driver() -> Path:
    """The script with kafkajs, its modules beside it."""
    folder = HERE / "js"
    sources = [folder / "package.json", *sorted(folder.glob("*.js"))]
    with locked():
        return built("foreign-js", sources, lambda to: npm(sources, to)) / "driver.js"


def _client_jars(version: str) -> Path:
    pom = HERE / "java" / "clients.xml"
    with locked():
        return built(
            f"foreign-{version}", [pom], lambda to: copy_jars(pom, to, f"-Dclient.version={version}")
        )


def _javac(jars: Path, sources: list[Path], to: Path) -> None:
    lint = "-Xlint:all,-processing,-path,-serial"
    run(["javac", "--release", "17", lint, "-cp", f"{jars}/*", "-d", str(to), *map(str, sources)], to)


def main() -> str | None:
    """Build all that is chosen; what is missing from PATH if something is."""
    if absent := missing("java", "javac", "mvn", "go", "node", "npm"):
        return f"the foreign clients need {', '.join(absent)} on PATH"
    for version in chosen():
        java_driver(version)
    apps()
    go_driver()
    js_driver()
    return None


if __name__ == "__main__":
    sys.exit(main())
