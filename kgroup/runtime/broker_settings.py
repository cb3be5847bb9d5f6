"""A broker's settings by where they are given: its own, the cluster's, at the start, by default.

The first two are changed by request while it runs (KIP-226) and kept in the catalog; those of one broker are
under its id, those of all under "". Kafka's DynamicBrokerConfig is the source.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from kgroup.coordinator.config import GroupConfig
from kgroup.errors import ErrorCode, Refused
from kgroup.numbers import INT64_MAX
from kgroup.protocol.config_numbers import FROM_ALL_BROKERS, FROM_BROKER, FROM_DEFAULT, FROM_FILE, FROM_TOPIC
from kgroup.runtime.catalog import Catalog
from kgroup.runtime.settings import BrokerSettings
from kgroup.runtime.topic_settings import SETTINGS
from kgroup.settings import LONG, Setting, number

ALL_BROKERS = ""

OF_TOPICS = {
    row.behind: replace(row, name=row.behind, default=None if row.is_coarse_behind else row.default)
    for row in SETTINGS.values()
    if row.behind
}
"""The values of topics that set nothing of their own, by the broker's names."""
AT_START = {**BrokerSettings.rows(), **GroupConfig.rows()}
"""The other settings that a broker may be given at its start."""
OF_THE_PROCESS = {name: row for name, row in AT_START.items() if row.dynamic}
"""Settings that act on the whole process and may be changed while it runs."""
_FOR_TOOLS = (
    number("follower.replication.throttled.rate", INT64_MAX, type=LONG).documented(
        "Stored for Kafka's tools; nothing is replicated here."
    ),
    number("leader.replication.throttled.rate", INT64_MAX, type=LONG).documented(
        "Stored for Kafka's tools; nothing is replicated here."
    ),
    number("replica.alter.log.dirs.io.max.bytes.per.second", INT64_MAX, type=LONG).documented(
        "Stored for Kafka's tools; nothing is throttled here."
    ),
)
DYNAMIC = {**OF_TOPICS, **OF_THE_PROCESS, **{row.name: row for row in _FOR_TOOLS}}
"""Settings that may be changed while a broker runs."""


class Layer(NamedTuple):
    """A place that gives a setting a value."""

    name: str
    value: str | None
    source: int


def in_force(name: str, layers: Sequence[Layer]) -> Layer:
    """Return the layer that decides on a topic setting; its default if no layer gives a value."""
    return layers[0] if layers else Layer(name, SETTINGS[name].default_text, FROM_DEFAULT)


class BrokerConfigs:
    """The layers of one cluster: what it was given at its start, and what its catalog contains now."""

    def __init__(self, given: Mapping[str, str], catalog: Catalog) -> None:
        self.given = given
        self._catalog = catalog

    @property
    def dynamic(self) -> Mapping[str, Mapping[str, str]]:
        """What was changed while it runs, by broker id."""
        return self._catalog.broker_configs

    def layers(self, row: Setting, node: int | None) -> list[Layer]:
        """Return every place that gives a broker setting a value, the one that decides first."""
        return list(self._layers(row.name, row.default_text, node))

    def topic_layers(self, name: str, own: Mapping[str, str], node: int | None) -> list[Layer]:
        """Return every place that gives a topic setting a value, the one that decides first."""
        layers = [Layer(name, own[name], FROM_TOPIC)] if name in own else []
        if behind := SETTINGS[name].behind:
            layers += self.layers(OF_TOPICS[behind], node)
        return layers

    def of_topics(self, node: int | None) -> dict[str, str]:
        """Return what broker `node` (None: all of them) gives topics that set nothing of their own."""
        given = {name: self.given[name] for name in OF_TOPICS if name in self.given}
        return {**given, **self._changed(OF_TOPICS, node)}

    def of_the_process(self, node: int | None) -> dict[str, str]:
        """Return what was changed of the settings that act on the whole process."""
        return self._changed(OF_THE_PROCESS, node)

    def _changed(self, names: Container[str], node: int | None) -> dict[str, str]:
        settings: dict[str, str] = {}
        for entity in self._entities(node):
            settings.update(
                (name, text) for name, text in self.dynamic.get(entity, {}).items() if name in names
            )
        return settings

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
            DYNAMIC[name].parse(text)
        except Refused as refused:
            raise Refused(ErrorCode.INVALID_REQUEST, refused.message) from None


def known(name: str) -> Setting:
    """Return a broker setting; INVALID_CONFIG for an unknown one."""
    row = DYNAMIC.get(name) or AT_START.get(name)
    if row is None:
        raise Refused(ErrorCode.INVALID_CONFIG, f"Unknown config name: {name}")
    return row
