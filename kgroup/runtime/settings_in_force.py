"""The settings in force: of the process, and of each topic at each broker."""

from collections.abc import Mapping, Sequence

from kgroup.coordinator.config import GroupConfig
from kgroup.domain import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_TOPIC
from kgroup.protocol.releases import Release
from kgroup.runtime.broker_settings import AT_START, OF_TOPICS, BrokerConfigs
from kgroup.runtime.catalog import Catalog, CatalogTopic
from kgroup.runtime.settings import BrokerSettings
from kgroup.runtime.topic_settings import TopicSettings
from kgroup.settings import no_such_setting


class SettingsInForce:
    """Computed on first use, and kept until something changes."""

    def __init__(
        self,
        static: tuple[BrokerSettings, GroupConfig],
        configs: BrokerConfigs,
        catalog: Catalog,
        nodes: Sequence[int],
    ) -> None:
        self._static, self._groups = static
        self._configs = configs
        self._catalog = catalog
        self.only_node = nodes[0] if len(nodes) == 1 else None
        """The broker whose own settings apply to all partitions; None if each has its own."""
        self._of_topics: dict[str, dict[int | None, TopicSettings]] = {}
        self._of_groups: dict[str, tuple[Mapping[str, str], GroupConfig]] = {}
        self.process = self._static
        self.forget_all()

    def of_topic(self, name: str, node: int | None) -> TopicSettings:
        """Return what is in force for a topic that exists, where broker `node` leads (None: anywhere)."""
        if node is None:
            node = self.only_node
        of_topic = self._of_topics.setdefault(name, {})
        settings = of_topic.get(node)
        if settings is None:
            own = self.own_of(self._catalog.topics[name])
            settings = of_topic[node] = TopicSettings.of(own, self._configs.of_topics(node))
        return settings

    def of_group(self, group_id: str) -> GroupConfig:
        """Return what is in force for a group, which need not exist."""
        own = self._catalog.group_configs.get(group_id)
        if own is None:
            self._of_groups.pop(group_id, None)
            return self._groups
        settings = self._of_groups.get(group_id)
        if settings is None or settings[0] is not own:
            settings = self._of_groups[group_id] = own, self._groups.of_group(own)
        return settings[1]

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
    ours, theirs = BrokerSettings.rows(), GroupConfig.rows()
    for name, text in config.items():
        if not is_setting(name):
            raise no_such_setting(name, (*AT_START, *OF_TOPICS))
        if name in OF_TOPICS:
            OF_TOPICS[name].given(text)
    return (
        BrokerSettings.of({k: v for k, v in config.items() if k in ours}),
        GroupConfig.of({k: v for k, v in config.items() if k in theirs}, kafka),
    )


def is_setting(name: str) -> bool:
    """Return whether `read_settings` knows a setting of this name."""
    return name in AT_START or name in OF_TOPICS
