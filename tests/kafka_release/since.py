"""Which release first served each version of each API, of the definitions in the jars of all since 2.3.

`make kafka-since` writes kgroup/protocol/since.py of it; tests/interop/versions asks brokers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from kgroup.protocol import registry
from tests.interop.toolchain import built, locked, run

from .releases import LAST
from .wire import Spec, specs, versions

FIRST_WITHOUT_ZOOKEEPER = LAST["3.3"]
"""From here on a broker is taken to be one of KRaft, for which this release was declared ready."""
WRITTEN = Path(__file__).parents[2] / "kgroup" / "protocol" / "since.py"
HEAD = '''"""Versions of requests that Kafka 2.3 did not serve; written by `make kafka-since`."""

SINCE: dict[int, dict[int, str]] = {
'''
BETWEEN = '''}
"""API key → version → the release that first served it; versions of 2.3 are left out."""

GAPS: dict[int, list[str]] = {
'''
TAIL = '''}
"""API key → releases without it, though one before them has it: what brokers of KRaft got later."""
'''


def jars(release: str) -> Path:
    """Folder with the jar of the clients, which declares what brokers serve."""
    get = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact=org.apache.kafka:kafka-clients:{release}"]
    with locked():
        return built(f"clients-{release}", [], lambda to: run([*get, f"-DoutputDirectory={to}"], to))


def served(release: str) -> dict[int, frozenset[int]]:
    """The versions of each API that a broker of a release serves to clients as stable ones."""
    kind = "broker" if release >= FIRST_WITHOUT_ZOOKEEPER else "zkBroker"
    return {
        spec["apiKey"]: _stable(spec)
        for spec in specs(jars(release), "kafka-clients").values()
        if spec["type"] == "request" and kind in spec.get("listeners", (kind,))
    }


def _stable(spec: Spec) -> frozenset[int]:
    found = versions(spec["validVersions"])
    return frozenset(found[:-1] if spec.get("latestVersionUnstable", False) else found)


def since(releases: Iterable[tuple[str, Mapping[int, frozenset[int]]]]) -> dict[int, dict[int, str]]:
    """The first release with each version that kgroup knows and the first release lacks."""
    (_, oldest), *later = releases
    found: dict[int, dict[int, str]] = {}
    for release, apis in later:
        for key in registry.KAFKA_APIS:
            known = {*oldest.get(key, ()), *found.get(key, ())}
            for version in sorted(
                apis.get(key, frozenset()) & {*registry.request_class(key).VERSIONS} - known
            ):
                found.setdefault(key, {})[version] = release.rpartition(".")[0]
    return {key: found[key] for key in sorted(found)}


def gaps(releases: Iterable[tuple[str, Mapping[int, frozenset[int]]]]) -> dict[int, list[str]]:
    """The releases without an API of kgroup's that one before them has."""
    had: set[int] = set()
    found: dict[int, list[str]] = {}
    for release, apis in releases:
        for key in sorted(had - apis.keys()):
            found.setdefault(key, []).append(release.rpartition(".")[0])
        had |= apis.keys() & {*registry.KAFKA_APIS}
    return found


def main() -> None:
    """Write the tables."""
    releases = [(release, served(release)) for release in LAST.values()]
    table = since(releases)
    rows = (
        f"    {key}: {{{', '.join(f'{version}: {json.dumps(text)}' for version, text in row.items())}}},"
        f"  # {registry.name_of(key)}\n"
        for key, row in table.items()
    )
    absent = (
        f"    {key}: {json.dumps(without)},  # {registry.name_of(key)}\n"
        for key, without in gaps(releases).items()
    )
    WRITTEN.write_text(f"{HEAD}{''.join(rows)}{BETWEEN}{''.join(absent)}{TAIL}")


if __name__ == "__main__":
    main()
