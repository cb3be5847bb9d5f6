"""What a release of Kafka declares that kgroup does not know, or otherwise than an earlier release.

`python -m tests.kafka_release 4.4.0`, `python -m tests.kafka_release --from 4.3.1 4.4.0`
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping

from kgroup.coordinator.config import GroupConfig
from kgroup.errors import ErrorCode
from kgroup.protocol import registry
from kgroup.protocol.codec import Message
from kgroup.protocol.group_records import record_classes
from kgroup.protocol.releases import NEWEST, SERVED
from kgroup.protocol.releases import Release as Served
from kgroup.protocol.share_state_records import PAIRS as SHARE_STATE_PAIRS
from tests.differential.settings import ELSEWHERE

from .between import differences_between
from .release import Release
from .wire import added, differences, versions

RECORDS = {
    cls.__name__: cls for pair in (*record_classes().values(), *SHARE_STATE_PAIRS.values()) for cls in pair
}


def unknown(release: Release) -> Iterator[str]:
    """Each difference in a line, that of an API or a record where the two disagree on bytes first."""
    served = next((each for each in SERVED if release.version.startswith(f"{each}.")), NEWEST)
    config = GroupConfig(kafka=served)
    yield from _wrong(release)
    yield from _apis(release, served)
    for name in sorted(release.records.keys() - RECORDS.keys()):
        yield f"record {name}"
    known = {
        "error": {e.name: f"{e.value}{', retriable' if e.retriable else ''}" for e in ErrorCode},
        "feature": {name: str(last) for name, last in served.levels.items()},
        "broker setting": config.as_text(),
        # Where the broker's own decides and is no number, Kafka declares no default.
        "group setting": {
            name: release.declared["group setting"][name]
            if row.behind and not isinstance(row.default, int)
            else row.default_text
            for name, row in config.of_groups().items()
        },
    }
    for kind, values in known.items():
        yield from _values(kind, release.declared[kind], values)


def _wrong(release: Release) -> Iterator[str]:
    """Fields that differ in versions that both know."""
    for key in release.requests.keys() & registry.KAFKA_APIS:
        for spec, cls in zip(release.requests[key], _classes(key), strict=True):
            yield from differences(spec, cls)
    for name, cls in RECORDS.items():
        yield from differences(release.records[name], cls)


def _classes(key: int) -> tuple[type[Message], type[Message]]:
    return registry.request_class(key), registry.response_class(key)


def _apis(release: Release, served: Served) -> Iterator[str]:
    for key in sorted(set(registry.KAFKA_APIS) - release.requests.keys()):
        if served.versions(key):
            yield f"API {key} {registry.name_of(key)}: not there"
    for key, pair in sorted(release.requests.items()):
        if key not in registry.KAFKA_APIS:
            yield f"API {key} {pair[0]['name'].removesuffix('Request')} {pair[0]['validVersions']}"
            continue
        for spec in pair:
            newest = served.versions(key)[-1]
            yield from added(spec, newest)
            if newest not in versions(spec["validVersions"]):
                yield f"{spec['name']}: no version {newest}"


def _values(kind: str, declared: Mapping[str, str], known: Mapping[str, str]) -> Iterator[str]:
    for name, value in declared.items():
        if name in known and known[name] not in (value, value.split(" ")[0]):
            yield f"{kind} {name}: {value}, here {known[name]}"
        elif name not in known and name not in ELSEWHERE:
            yield f"{kind} {name}: {value}"
    for name in sorted(known.keys() - declared.keys(), key=list(known).index):
        if not name.startswith("kgroup."):
            yield f"{kind} {name}: not there, here {known[name]}"


def main() -> int:
    """Print the differences; 1 if a message that both know differs."""
    parser = argparse.ArgumentParser(prog="kafka_release", description=__doc__)
    parser.add_argument("version", help="of Kafka, such as 4.4.0")
    parser.add_argument("--from", dest="before", help="an earlier release: what differs from it, of all")
    told = parser.parse_args()
    release = Release(told.version)
    if told.before:
        for line in differences_between(Release(told.before), release):
            print(line)
        return 0
    wrong = list(_wrong(release))
    for line in unknown(release):
        print(line)
    print(f"\nKafka {release.version}: {len(wrong)} messages differ in versions that both know")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
