"""The settings in force: of the process, and of each topic at each broker."""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

from kgroup.coordinator.config import GroupConfig
from kgroup.domain import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_TOPIC
from kgroup.errors import ConfigError, Refused
from kgroup.protocol.releases import Release
from kgroup.runtime.broker_settings import OF_TOPICS, BrokerConfigs
from kgroup.runtime.catalog import Catalog, CatalogTopic
from kgroup.runtime.settings import BrokerSettings
from kgroup.runtime.topic_settings import TopicSettings, parse


class SettingsInForce:
    """Computed on first use, and kept until something changes."""

    def __init__(
        self, static: BrokerSettings, configs: BrokerConfigs, catalog: Catalog, nodes: Sequence[int]
    ) -> None:
        self._static = static
        self._configs = configs
        self._catalog = catalog
        self.only_node = nodes[0] if len(nodes) == 1 else None
        """The broker whose own settings apply to all partitions; None if each has its own."""
        self._of_topics: dict[str, dict[int | None, TopicSettings]] = {}
        self.process = static
        self.forget_all()

    def of_topic(self, name: str, node: int | None) -> TopicSettings:
        """Return what is in force for a topic that exists, where broker `node` leads (None: anywhere)."""
        if node is None:
            node = self.only_node
        of_topic = self._of_topics.setdefault(name, {})
        found = of_topic.get(node)
        if found is None:
            own = self.own_of(self._catalog.topics[name])
            found = of_topic[node] = TopicSettings.of(own, self._configs.of_topics(node))
        return found

    def own_of(self, topic: CatalogTopic) -> Mapping[str, str]:
        """Return what a topic sets of its own; topics of state start with smaller segments than others."""
        if topic.name == OFFSETS_TOPIC:
            return {"segment.bytes": str(self.process.offsets_segment_bytes), **topic.config}
        if topic.name == TRANSACTION_TOPIC:
            return {"segment.bytes": str(self.process.transaction_segment_bytes), **topic.config}
        if topic.name == SHARE_STATE_TOPIC:
            return {"segment.bytes": str(self.process.share_state_segment_bytes), **topic.config}
        return topic.config

    def forget(self, topic: str) -> None:
        """Drop the settings of a changed or deleted topic."""
        self._of_topics.pop(topic, None)

    def forget_all(self) -> None:
        """Drop all settings, as a broker's changed."""
        self._of_topics.clear()
        changed = self._configs.of_the_process(self.only_node)
        self.process = BrokerSettings.of({**self._static.as_text(), **changed})


def read_settings(config: Mapping[str, str], kafka: Release) -> tuple[BrokerSettings, GroupConfig]:
    """Return the broker's and groups' settings, and a check of topics'; ConfigError for a wrong one."""
    ours, theirs = BrokerSettings.names(), GroupConfig.names()
    for name, text in config.items():
        if not is_setting(name):
            raise ConfigError(f"no such setting: {name}", near_misses(name, (*ours, *theirs, *OF_TOPICS)))
        if name in OF_TOPICS:
            try:
                parse(name, text, OF_TOPICS[name])
            except Refused as refused:
                raise ConfigError(refused.message or f"{name}={text} cannot be") from None
    return (
        BrokerSettings.of({k: v for k, v in config.items() if k in ours}),
        GroupConfig.of({k: v for k, v in config.items() if k in theirs}, kafka),
    )


def is_setting(name: str) -> bool:
    """Return whether `read_settings` knows a setting of this name."""
    return name in BrokerSettings.names() or name in GroupConfig.names() or name in OF_TOPICS


def near_misses(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, list(known), 3)
    return (
        f"did you mean {' or '.join(near)}?"
        if near
        else "settings have Kafka's names, as in server.properties"
    )
