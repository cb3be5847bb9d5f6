"""A cluster's state outside its logs: topics, settings of groups, producer ids handed out."""

import secrets
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from kgroup.domain import INTERNAL_TOPICS, Topic, TopicImage, uuid_bytes, uuid_text
from kgroup.errors import StorageError
from kgroup.log.directory import LOCK_FILE
from kgroup.log.files import CATALOG, partition_folders
from kgroup.log.interface import TornTail
from kgroup.protocol.releases import NEWEST, Release
from kgroup.runtime.change_file import ChangeFile
from kgroup.runtime.placement import Noted, Placement

FORMAT = 2
PRODUCER_ID_BLOCK = 1000
ONLY = "all"
"""The name of the one entry that a table has."""
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Features:
    """Finalized levels of the cluster's features (KIP-584).

    `epoch` rises with every change, so that clients know the newer of two answers.
    """

    levels: Mapping[str, int]
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class CatalogTopic:
    """A topic as it was created; `config` has only what was set, under Kafka's names.

    `placements` has the partitions that were placed by request; the others follow the rule.
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


class _Table(Generic[V]):
    """One kind of entries by name; changes since the last `done` can be undone."""

    def __init__(self, written: Callable[[V], object], read: Callable[[Any], V]) -> None:
        self.entries: dict[str, V] = {}
        self._written, self._read = written, read
        self._before: dict[str, V | None] = {}

    def put(self, name: str, entry: V | None) -> None:
        """Give a name another entry; None removes it."""
        self._before.setdefault(name, self.entries.get(name))
        self._set(name, entry)

    def changed(self) -> dict[str, tuple[V | None, V | None]]:
        """Return the entries before and now that differ, by name."""
        pairs = {name: (before, self.entries.get(name)) for name, before in self._before.items()}
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}

    def done(self, *, undo: bool = False) -> None:
        """Keep the changes, or undo them."""
        if undo:
            for name, before in self._before.items():
                self._set(name, before)
        self._before.clear()

    def changes(self) -> dict[str, object]:
        """Return what changed, as it is written."""
        changed = self.changed().items()
        return {name: None if now is None else self._written(now) for name, (_, now) in changed}

    def everything(self) -> dict[str, object]:
        return {name: self._written(entry) for name, entry in self.entries.items()}

    def apply(self, entries: Mapping[str, Any]) -> None:
        """Apply what `changes` or `everything` wrote."""
        for name, entry in entries.items():
            self._set(name, None if entry is None else self._read(entry))

    def _set(self, name: str, entry: V | None) -> None:
        if entry is None:
            self.entries.pop(name, None)
        else:
            self.entries[name] = entry


class Catalog:
    """The durable list of topics; every change is on disk when the call returns.

    Without a folder it lives in memory. StorageError for a file that cannot be read or written, is damaged,
    belongs to another cluster than `cluster_id`, or is gone from a folder that is not `new`. `torn_tail` is
    what had to be cut off a change that a kill or power loss interrupted, or None. A new one begins with the
    features of `kafka`.
    """

    def __init__(
        self, folder: Path | None, cluster_id: str = "", *, new: bool = True, kafka: Release = NEWEST
    ) -> None:
        self._file = ChangeFile(folder / CATALOG) if folder else None
        # On macOS and Windows, topics that differ in case would have one folder.
        self._one_case = folder is not None and (folder / LOCK_FILE.upper()).exists()
        self._cluster_id = cluster_id
        self._next_producer_id = 0
        self._changing = False
        self._alike: dict[str, set[str]] = {}
        self._topics = _Table(_written, _topic)
        self._groups = _Table[dict[str, str]](dict, dict)
        self._brokers = _Table[dict[str, str]](dict, dict)
        self._features = _Table[Features](asdict, _features)
        self._settled = _Table(bool, bool)
        self._producer_ids = _Table(int, int)
        self._tables: dict[str, _Table[Any]] = {
            "topics": self._topics,
            "group_configs": self._groups,
            "broker_configs": self._brokers,
            "features": self._features,
            "settled": self._settled,
            "producer_ids": self._producer_ids,
        }
        self._features.entries[ONLY] = Features(kafka.levels)
        self.image = TopicImage()
        if self._file and self._file.path.exists():
            self._read(self._file)
        elif folder and not new and any(partition_folders(folder)):
            raise StorageError(
                f"{folder / CATALOG} is missing: it holds the topics, their ids and settings, and those of"
                " groups",
                hint="restore it from a backup; or delete meta.properties: the folder is then taken over as a"
                " new one, topics by its partitions' names",
            )
        else:
            self._write(lambda file: file.rewrite(self._everything()))

    @property
    def topics(self) -> Mapping[str, CatalogTopic]:
        return self._topics.entries

    @property
    def group_configs(self) -> Mapping[str, dict[str, str]]:
        return self._groups.entries

    @property
    def broker_configs(self) -> Mapping[str, dict[str, str]]:
        return self._brokers.entries

    @property
    def features(self) -> Features:
        return self._features.entries[ONLY]

    @property
    def settled(self) -> Container[str]:
        """What existed once; if it is missing now, it was removed: topics of state whose
        partitions all had a folder, and ACLS."""
        return self._settled.entries

    @property
    def torn_tail(self) -> TornTail | None:
        return self._file.torn_tail if self._file else None

    @contextmanager
    def together(self) -> Iterator[None]:
        """Make one change of those inside: on disk when the block ends, or, if it raises, never made."""
        if self._changing:
            yield
            return
        self._changing = True
        image = self.image
        try:
            yield
            topics = self._topics.changed()
            if topics:
                seen = {name: _seen(now) if now else None for name, (_, now) in topics.items()}
                self.image = self.image.changed(seen)
            change: Noted = {
                what: noted for what, table in self._tables.items() if (noted := table.changes())
            }
            if change:
                change["version"] = self.image.version
                self._write(lambda file: file.append(change, self._everything))
        except BaseException:
            self.image, self._alike = image, {}
            for table in self._tables.values():
                table.done(undo=True)
            raise
        finally:
            self._changing = False
        for table in self._tables.values():
            table.done()

    def add(self, topic: CatalogTopic) -> None:
        """Create a topic, or replace the one of the same name."""
        with self.together():
            self._topics.put(topic.name, topic)
            if self._alike:
                self._alike.setdefault(self._confusable(topic.name), set()).add(topic.name)

    def remove(self, name: str) -> None:
        with self.together():
            self._topics.put(name, None)
            if self._alike:
                self._alike[self._confusable(name)].discard(name)

    def _confusable(self, name: str) -> str:
        """Names that are one under this are one in names of metrics, or one folder: only one is allowed."""
        name = name.replace(".", "_")
        return name.lower() if self._one_case else name

    def alike(self, name: str) -> str | None:
        """Return a topic whose name differs at most in '.' and '_', or in case where folders have none."""
        if not self._alike:
            for known in self.topics:
                self._alike.setdefault(self._confusable(known), set()).add(known)
        return next(iter(self._alike.get(self._confusable(name), ())), None)

    def grow(self, name: str, partitions: int, placements: Mapping[int, Placement]) -> None:
        """Give a topic more partitions; those in `placements` are placed so."""
        topic = self.topics[name]
        self.add(replace(topic, partitions=partitions, placements={**topic.placements, **placements}))

    def by_id(self, topic_id: bytes) -> CatalogTopic | None:
        name = self.image.name_of(topic_id)
        return self.topics.get(name) if name is not None else None

    def configure_group(self, group_id: str, settings: dict[str, str]) -> None:
        """Replace a group's dynamic settings; none removes the entry. The group need not exist."""
        with self.together():
            self._groups.put(group_id, settings or None)

    def configure_broker(self, broker: str, settings: dict[str, str]) -> None:
        """Replace the dynamic settings of a broker, by its id, or of all ("")."""
        with self.together():
            self._brokers.put(broker, settings or None)

    def finalize_features(self, levels: Mapping[str, int]) -> None:
        """Set the finalized levels of the cluster's features."""
        with self.together():
            self._features.put(ONLY, Features(dict(levels), self.features.epoch + 1))

    def settle(self, name: str) -> None:
        """Record that every partition of a topic of state has its folder, or that a file exists."""
        with self.together():
            self._settled.put(name, True)

    def new_topic_id(self) -> bytes:
        """Return a random id that no topic has; never one that Kafka reserves or that begins with a dash."""
        while True:
            topic_id = secrets.token_bytes(16)
            if not uuid_text(topic_id).startswith("-") and topic_id not in self.image.by_id:
                return topic_id

    def allocate_producer_id(self) -> int:
        """Return an id never given out before, also across restarts (a crash may skip some)."""
        if self._next_producer_id >= self._reserved:
            self._reserve(self._next_producer_id + PRODUCER_ID_BLOCK)
        self._next_producer_id += 1
        return self._next_producer_id - 1

    def reserve_producer_ids(self, below: int) -> None:
        """Never return an id below this one: they are in a log that came from elsewhere."""
        if below > self._next_producer_id:
            self._reserve(below)
            self._next_producer_id = below

    def close(self) -> None:
        """Rewrite the file in the form in which any damage to it is noticed; safe to call twice."""
        if self._file is not None:
            with suppress(OSError):  # what is there is whole: a full disk must not fail a shutdown
                self._file.shorten(self._everything)

    @property
    def _reserved(self) -> int:
        return self._producer_ids.entries.get(ONLY, 0)

    def _reserve(self, below: int) -> None:
        with self.together():
            self._producer_ids.put(ONLY, below)

    def _read(self, file: ChangeFile) -> None:
        try:
            first, *changes = file.read()
            if first["format"] != FORMAT:
                raise ValueError(f"its format is {first['format']}, this kgroup reads {FORMAT}")
            if first["cluster_id"] != self._cluster_id:
                raise ValueError(f"it belongs to cluster {first['cluster_id']}, not {self._cluster_id}")
            for line in (first, *changes):
                for name, table in self._tables.items():
                    table.apply(line.get(name, {}))
            version = int((changes or [first])[-1]["version"])
        except OSError as error:
            raise StorageError(f"cannot read {file.path}: {error.strerror}") from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StorageError(
                f"{file.path} is not a kgroup catalog: {error}", hint="restore it from a backup"
            ) from None
        self._next_producer_id = self._reserved
        self.image = TopicImage.of(map(_seen, self.topics.values()), version, version)
        self.close()

    def _everything(self) -> Noted:
        tables = {name: table.everything() for name, table in self._tables.items()}
        return {"format": FORMAT, "cluster_id": self._cluster_id, "version": self.image.version, **tables}

    def _write(self, act: Callable[[ChangeFile], None]) -> None:
        if self._file is None:
            return
        try:
            act(self._file)
        except OSError as error:
            raise StorageError(f"cannot write {self._file.path}: {error.strerror}") from None


def _seen(topic: CatalogTopic) -> Topic:
    return Topic(topic.name, topic.topic_id, topic.partitions)


def _topic(noted: Noted) -> CatalogTopic:
    placements = {int(p): Placement.read(placement) for p, placement in noted.get("placements", {}).items()}
    return CatalogTopic(**{**noted, "topic_id": uuid_bytes(noted["topic_id"]), "placements": placements})


def _written(topic: CatalogTopic) -> Noted:
    noted: Noted = {
        "name": topic.name,
        "topic_id": uuid_text(topic.topic_id),
        "partitions": topic.partitions,
        "replication_factor": topic.replication_factor,
    }
    if topic.config:
        noted["config"] = dict(topic.config)
    if topic.placements:
        noted["placements"] = {p: asdict(placement) for p, placement in topic.placements.items()}
    return noted


def _features(noted: Noted) -> Features:
    return Features({str(k): int(v) for k, v in noted["levels"].items()}, int(noted["epoch"]))


def adopt_topics(folder: Path, catalog: Catalog) -> None:
    """Adopt the topics whose partitions lie in a folder without a catalog, such as a copy of a Kafka's.

    All or none: topics missing from a partial catalog would be unknown, and their folders in the way.
    """
    partitions: dict[str, int] = {}
    ids: dict[str, bytes] = {}
    for path, name, number in partition_folders(folder):
        partitions[name] = max(partitions.get(name, 0), number + 1)
        ids.setdefault(name, _topic_id_in(path / "partition.metadata") or catalog.new_topic_id())
    with catalog.together():
        for name, count in partitions.items():
            catalog.add(CatalogTopic(name, ids[name], count))


def _topic_id_in(path: Path) -> bytes | None:
    """Return the topic id Kafka keeps next to a partition's segments (KIP-516)."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        return next(uuid_bytes(line.split(":")[1].strip()) for line in lines if line.startswith("topic_id:"))
    except (OSError, ValueError, StopIteration):
        return None
