"""A broker's settings by where they are given: its own, the cluster's, at the start, by default.

The first two are changed by request while it runs (KIP-226) and kept in the catalog; those of one broker are
under its id, those of all under "". Kafka's DynamicBrokerConfig is the source.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import NamedTuple

from kgroup.coordinator.config import GroupConfig
from kgroup.errors import ErrorCode, Refused
from kgroup.runtime.catalog import Catalog
from kgroup.runtime.settings import BrokerSettings
from kgroup.runtime.topic_settings import INT, LIST, LONG, SETTINGS, TopicSetting, at_least, between, parse

ALL_BROKERS = ""
FROM_TOPIC, FROM_BROKER, FROM_ALL_BROKERS, FROM_FILE, FROM_DEFAULT = 1, 2, 3, 4, 5  # config sources

OF_TOPICS = {setting.broker_name: setting for setting in SETTINGS.values() if setting.broker_name}
"""The values of topics that set nothing of their own, by the broker's names."""
OF_THE_PROCESS = {
    name: TopicSetting(kind, BrokerSettings().as_text()[name], "", between(*BrokerSettings.bounds(name)))
    for name, kind in {"log.cleaner.backoff.ms": LONG, "max.connections": INT}.items()
}
"""Settings that act on the whole process and may be changed while it runs."""
_THROTTLES = {
    name: TopicSetting(LONG, str((1 << 63) - 1), "", at_least(0))
    for name in (
        "follower.replication.throttled.rate",
        "leader.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    )
}
DYNAMIC: dict[str, TopicSetting] = {**OF_TOPICS, **OF_THE_PROCESS, **_THROTTLES}
"""Settings that may be changed while a broker runs; throttles only for Kafka's tools, without effect."""
NULL_BY_DEFAULT = frozenset(
    {"log.flush.interval.ms", "log.retention.ms", "log.roll.jitter.ms", "log.roll.ms"}
)
"""Settings without a default of their own: Kafka has a second, coarser setting behind each."""


class Layer(NamedTuple):
    """A place that gives a setting a value."""

    name: str
    value: str | None
    source: int


def in_force(name: str, layers: Sequence[Layer]) -> Layer:
    """Return the layer that decides on a topic setting; its default if no layer gives a value."""
    return layers[0] if layers else Layer(name, SETTINGS[name].default, FROM_DEFAULT)


class BrokerConfigs:
    """The layers of one cluster: what it was given at its start, and what its catalog contains now."""

    def __init__(self, given: Mapping[str, str], catalog: Catalog) -> None:
        self.given = given
        self._catalog = catalog

    @property
    def dynamic(self) -> Mapping[str, Mapping[str, str]]:
        """What was changed while it runs, by broker id."""
        return self._catalog.broker_configs

    def layers(self, name: str, default: str | None, node: int | None) -> list[Layer]:
        """Return every place that gives a broker setting a value, the one that decides first."""
        return list(self._layers(name, default, node))

    def topic_layers(self, name: str, own: Mapping[str, str], node: int | None) -> list[Layer]:
        """Return every place that gives a topic setting a value, the one that decides first."""
        setting = SETTINGS[name]
        found = [Layer(name, own[name], FROM_TOPIC)] if name in own else []
        if setting.broker_name:
            default = None if setting.broker_name in NULL_BY_DEFAULT else setting.default
            found += self._layers(setting.broker_name, default, node)
        return found

    def of_topics(self, node: int | None) -> dict[str, str]:
        """Return what broker `node` (None: all of them) gives topics that set nothing of their own."""
        given = {name: self.given[name] for name in OF_TOPICS if name in self.given}
        return {**given, **self._changed(OF_TOPICS, node)}

    def of_the_process(self, node: int | None) -> dict[str, str]:
        """Return what was changed of the settings that act on the whole process."""
        return self._changed(OF_THE_PROCESS, node)

    def _changed(self, names: Container[str], node: int | None) -> dict[str, str]:
        found: dict[str, str] = {}
        for entity in self._entities(node):
            found.update((name, text) for name, text in self.dynamic.get(entity, {}).items() if name in names)
        return found

    def _layers(self, name: str, default: str | None, node: int | None) -> Iterator[Layer]:
        for entity in reversed(self._entities(node)):
            value = self.dynamic.get(entity, {}).get(name)
            if value is not None:
                source = FROM_ALL_BROKERS if entity == ALL_BROKERS else FROM_BROKER
                yield Layer(name, value, source)
        if name in self.given:
            yield Layer(name, self.given[name], FROM_FILE)
        if default is not None:
            yield Layer(name, default, FROM_DEFAULT)

    @staticmethod
    def _entities(node: int | None) -> list[str]:
        return [ALL_BROKERS] if node is None else [ALL_BROKERS, str(node)]


def check_dynamic(settings: Mapping[str, str], *, one_of_many: bool) -> None:
    """Raise INVALID_REQUEST, as Kafka does, for settings that cannot be changed while a broker runs.

    `one_of_many`: they are meant for one broker of several, which share a process.
    """
    fixed = sorted(name for name in settings if name not in DYNAMIC)
    if fixed:
        raise Refused(
            ErrorCode.INVALID_REQUEST,
            f"Cannot update these configs dynamically: Set({', '.join(fixed)})",
        )
    shared = sorted(name for name in settings if name in OF_THE_PROCESS)
    if shared and one_of_many:
        raise Refused(
            ErrorCode.INVALID_REQUEST,
            f"All brokers share one process: set {', '.join(shared)} for all, with an empty broker name",
        )
    for name, text in settings.items():
        try:
            parse(name, text, DYNAMIC[name])
        except Refused as refused:
            raise Refused(ErrorCode.INVALID_REQUEST, refused.message) from None


def is_list(name: str) -> bool:
    """Return whether a broker setting is a list; INVALID_CONFIG for an unknown one."""
    if name in DYNAMIC:
        return DYNAMIC[name].type == LIST
    if name in BrokerSettings.names() or name in GroupConfig.names():
        return name in GroupConfig.lists()
    raise Refused(ErrorCode.INVALID_CONFIG, f"Unknown config name: {name}")
