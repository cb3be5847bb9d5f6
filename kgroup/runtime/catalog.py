"""What a cluster remembers besides its logs: topics, settings of groups, producer ids handed out."""

from __future__ import annotations

import json
import secrets
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from kgroup.domain import INTERNAL_TOPICS, Topic, TopicImage, uuid_bytes, uuid_text
from kgroup.errors import StorageError
from kgroup.log.files import CATALOG, partition_folders, replace_file
from kgroup.runtime.metadata_features import Features
from kgroup.runtime.placement import Noted, Placement

FORMAT = 1
PRODUCER_ID_BLOCK = 1000


@dataclass(frozen=True, slots=True)
class CatalogTopic:
    """A topic as it was created; `config` holds only what was set, under Kafka's names.

    `placements` holds the partitions that somebody placed; the others follow the rule.
    """

    name: str
    topic_id: bytes
    partitions: int
    replication_factor: int = 1
    config: Mapping[str, str] = field(default_factory=dict)
    placements: Mapping[int, Placement] = field(default_factory=dict)

    @property
    def internal(self) -> bool:
        return self.name in INTERNAL_TOPICS


class Catalog:
    """The durable list of topics; every change is on disk when the call returns.

    Without a folder it lives in memory. StorageError for a file that cannot be read or written, is damaged,
    belongs to another cluster than `cluster_id`, or is gone from a folder that is not `new`.
    """

    def __init__(self, folder: Path | None, cluster_id: str = "", *, new: bool = True) -> None:
        self._path = folder / CATALOG if folder else None
        self._cluster_id = cluster_id
        self._saved_producer_id = 0
        self._next_producer_id = 0
        self._changing = False
        self._alike: dict[str, str] = {}  # of all topics, or empty: not looked at yet
        self.topics: dict[str, CatalogTopic] = {}
        self.group_configs: dict[str, dict[str, str]] = {}
        self.broker_configs: dict[str, dict[str, str]] = {}
        self.features = Features()
        self.settled: frozenset[str] = frozenset()
        """What was there once, so that one that is missing now was taken away: topics of state whose
        partitions all had a folder, and ACLS."""
        self.image = TopicImage()
        if self._path and self._path.exists():
            self._read(self._path)
        elif self._path and not new and any(partition_folders(self._path.parent)):
            raise StorageError(
                f"{self._path} is missing: it holds the topics, their ids and settings, and those of groups",
                hint="restore it from a backup; or delete meta.properties: the folder is then taken over as a"
                " new one, topics as its partitions' names tell",
            )
        else:
            self._save()

    @contextmanager
    def together(self) -> Iterator[None]:
        """What is changed inside is one change: on disk when the block ends, or, if it raises, never made."""
        if self._changing:
            yield
            return
        before = self.topics, self.image, self.group_configs, self.broker_configs, self.features
        self.topics, self.group_configs = dict(self.topics), dict(self.group_configs)
        self.broker_configs = dict(self.broker_configs)
        self._changing = True
        try:
            yield
            if self.topics != before[0]:
                version = self.image.version + 1
                created = not self.topics.keys() <= before[0].keys()
                self._set_image(version, version if created else self.image.created_version)
            if (self.topics, self.group_configs) != (before[0], before[2]) or (
                (self.broker_configs, self.features) != before[3:]
            ):
                self._save()
        except BaseException:
            self.topics, self.image, self.group_configs, self.broker_configs, self.features = before
            self._alike = {}
            raise
        finally:
            self._changing = False

    def add(self, topic: CatalogTopic) -> None:
        """Create a topic, or replace the one of the same name."""
        with self.together():
            self.topics[topic.name] = topic
            if self._alike:
                self._alike[_confusable(topic.name)] = topic.name

    def remove(self, name: str) -> None:
        with self.together():
            del self.topics[name]
            self._alike = {}

    def alike(self, name: str) -> str | None:
        """The topic whose name differs from this one at most in '.' and '_'."""
        if not self._alike:
            self._alike = {_confusable(known): known for known in self.topics}
        return self._alike.get(_confusable(name))

    def grow(self, name: str, partitions: int, placements: Mapping[int, Placement]) -> None:
        """Give a topic more partitions; those in `placements` lie where that says."""
        topic = self.topics[name]
        self.add(replace(topic, partitions=partitions, placements={**topic.placements, **placements}))

    def by_id(self, topic_id: bytes) -> CatalogTopic | None:
        name = self.image.name_of(topic_id)
        return self.topics.get(name) if name is not None else None

    def configure_group(self, group_id: str, settings: dict[str, str]) -> None:
        """Replace a group's dynamic settings; none removes the entry. The group need not exist."""
        with self.together():
            self.group_configs.pop(group_id, None)
            if settings:
                self.group_configs[group_id] = settings

    def configure_broker(self, broker: str, settings: dict[str, str]) -> None:
        """Replace the dynamic settings of a broker, by its id, or of all ("")."""
        with self.together():
            self.broker_configs.pop(broker, None)
            if settings:
                self.broker_configs[broker] = settings

    def finalize_features(self, levels: Mapping[str, int]) -> None:
        """Set the finalized levels of the cluster's features."""
        with self.together():
            self.features = Features(dict(levels), self.features.epoch + 1)

    def settle(self, name: str) -> None:
        """Remember that every partition of a topic of state has its folder, or that there is a file."""
        if name not in self.settled:
            self.settled |= {name}
            self._save()

    def new_topic_id(self) -> bytes:
        """A random id that no topic has; never one that Kafka reserves or that begins with a dash."""
        while True:
            found = secrets.token_bytes(16)
            if not uuid_text(found).startswith("-") and found not in self.image.by_id:
                return found

    def allocate_producer_id(self) -> int:
        """An id never given out before, also across restarts (a crash may skip some)."""
        if self._next_producer_id >= self._saved_producer_id:
            self._reserve(self._next_producer_id + PRODUCER_ID_BLOCK)
        self._next_producer_id += 1
        return self._next_producer_id - 1

    def reserve_producer_ids(self, below: int) -> None:
        """Give out no id below this one any more: they are in a log that came from elsewhere."""
        if below > self._next_producer_id:
            self._reserve(below)
            self._next_producer_id = below

    def _reserve(self, below: int) -> None:
        before, self._saved_producer_id = self._saved_producer_id, below
        try:
            self._save()
        except StorageError:
            self._saved_producer_id = before  # nobody may be given what the next start gives again
            raise

    def _set_image(self, version: int, created_version: int) -> None:
        topics = (Topic(t.name, t.topic_id, t.partitions) for t in self.topics.values())
        self.image = TopicImage.of(topics, version, created_version)

    def _read(self, path: Path) -> None:
        try:
            found = json.loads(path.read_bytes())
            if found["format"] != FORMAT:
                raise ValueError(f"its format is {found['format']}, this kgroup reads {FORMAT}")
            self._check(found)
            version = int(found["version"])
            self._next_producer_id = self._saved_producer_id = int(found["next_producer_id"])
            self.topics = {t.name: t for t in _topics(found["topics"])}
            self.group_configs = {str(k): dict(v) for k, v in found["group_configs"].items()}
            self.broker_configs = {str(k): dict(v) for k, v in found.get("broker_configs", {}).items()}
            self.settled = frozenset(str(name) for name in found.get("settled", ()))
            if "features" in found:
                levels = {str(k): int(v) for k, v in found["features"]["levels"].items()}
                self.features = Features(levels, int(found["features"]["epoch"]))
        except OSError as error:
            raise StorageError(f"cannot read {path}: {error.strerror}") from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StorageError(
                f"{path} is not a kgroup catalog: {error}", hint="restore it from a backup"
            ) from None
        self._set_image(version, version)

    def _check(self, found: Noted) -> None:
        """ValueError for a file that is not as it was written; those of older kgroups cannot be checked."""
        checksum = found.pop("checksum", None)
        if checksum is not None and checksum != _checksum(found):
            raise ValueError("its checksum is wrong")
        if found.get("cluster_id", self._cluster_id) != self._cluster_id:
            raise ValueError(f"it belongs to cluster {found['cluster_id']}, not {self._cluster_id}")

    def _save(self) -> None:
        if self._path is None:
            return
        content: Noted = {
            "format": FORMAT,
            "cluster_id": self._cluster_id,
            "version": self.image.version,
            "next_producer_id": self._saved_producer_id,
            "group_configs": self.group_configs,
            "broker_configs": self.broker_configs,
            "settled": sorted(self.settled),
            "features": asdict(self.features),
            "topics": [_written(topic) for topic in self.topics.values()],
        }
        content["checksum"] = _checksum(content)
        try:
            replace_file(self._path, json.dumps(content, indent=1) + "\n")
        except OSError as error:
            raise StorageError(f"cannot write {self._path}: {error.strerror}") from None


def _confusable(name: str) -> str:
    """Names that are one under this are one in names of metrics, too: Kafka allows only one of them."""
    return name.replace(".", "_")


def _checksum(content: Noted) -> int:
    return zlib.crc32(json.dumps(content).encode())


def _topics(found: Iterable[Noted]) -> Iterable[CatalogTopic]:
    for entry in found:
        placements = {int(p): Placement.read(each) for p, each in entry.pop("placements", {}).items()}
        yield CatalogTopic(**{**entry, "topic_id": uuid_bytes(entry["topic_id"]), "placements": placements})


def _written(topic: CatalogTopic) -> Noted:
    found = {**asdict(topic), "topic_id": uuid_text(topic.topic_id)}
    if not topic.placements:
        del found["placements"]  # an older kgroup reads the rest
    return found


def adopt_topics(folder: Path, catalog: Catalog) -> None:
    """Take over the topics whose partitions lie in a folder without a catalog, such as a copy of a Kafka's.

    All or none: of a catalog that holds some of them, the others would be no topics and in the way.
    """
    with catalog.together():
        for topic in _topics_of(folder, catalog):
            catalog.add(topic)


def _topics_of(folder: Path, catalog: Catalog) -> Iterable[CatalogTopic]:
    partitions: dict[str, int] = {}
    ids: dict[str, bytes] = {}
    for path, name, number in partition_folders(folder):
        partitions[name] = max(partitions.get(name, 0), number + 1)
        ids.setdefault(name, _topic_id_in(path / "partition.metadata") or catalog.new_topic_id())
    for name, count in partitions.items():
        yield CatalogTopic(name, ids[name], count)


def _topic_id_in(path: Path) -> bytes | None:
    """The topic id Kafka keeps beside a partition's segments (KIP-516)."""
    try:
        lines = path.read_text().splitlines()
        return next(uuid_bytes(line.split(":")[1].strip()) for line in lines if line.startswith("topic_id:"))
    except (OSError, ValueError, StopIteration):
        return None
