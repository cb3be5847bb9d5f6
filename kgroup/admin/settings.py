"""Settings of groups and brokers as the cluster has them (DescribeConfigs, IncrementalAlterConfigs)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from kgroup.admin.discovery import Answers, ClusterView, or_error
from kgroup.admin.refusals import refused
from kgroup.client.retry import Retry
from kgroup.errors import BrokerRefused, ErrorCode, KgroupError
from kgroup.protocol.config_numbers import (
    APPEND,
    BROKER,
    DELETE,
    FROM_ALL_BROKERS,
    FROM_BROKER,
    FROM_DEFAULT,
    FROM_FILE,
    FROM_GROUP,
    FROM_TOPIC,
    GROUP,
    SET,
    SUBTRACT,
    TOPIC,
)
from kgroup.security.rights import ALTER_CONFIGS, DESCRIBE_CONFIGS, on_cluster, on_group, on_topic

if TYPE_CHECKING:
    from kgroup.protocol.messages.describe_configs import DescribeConfigsResult

GROUP_SETTINGS = (
    "consumer.session.timeout.ms",
    "consumer.heartbeat.interval.ms",
    "consumer.assignment.interval.ms",
)
"""The settings of a consumer group (KIP-848); a broker may know more, for groups of other types."""
GROUP_SETTINGS_SINCE = "4.0"
_ORIGINS = {
    FROM_TOPIC: "topic",
    **dict.fromkeys((FROM_BROKER, FROM_ALL_BROKERS, FROM_FILE), "broker"),
    FROM_DEFAULT: "default",
    FROM_GROUP: "group",
}
OFFSETS_RETENTION = "offsets.retention.minutes"


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting in force; `origin` is group, broker or default. None for a value that is not reported."""

    name: str
    value: str | None
    origin: str


@dataclass(frozen=True, slots=True)
class Items:
    """A change of a list setting: items to add or remove, with others unchanged."""

    names: tuple[str, ...]
    added: bool


Wanted = str | Items | None
"""The wanted setting: a value, a change of its list, or None for the broker's own again."""


def group_settings(cluster: ClusterView, group_id: str) -> tuple[Setting, ...]:
    """Return a group's settings by name, those of the consumer protocol first; the group need not exist.

    Raise BrokerRefused with UNSUPPORTED_VERSION on brokers without settings of groups.
    """
    try:
        settings = _describe(cluster, None, GROUP, group_id, None)
    except BrokerRefused as error:
        if error.code != ErrorCode.INVALID_REQUEST:
            raise
        # Brokers that do not support this resource type answer so; nothing else here can be invalid.
        said = f"the broker has no settings of groups ({error.message})"
        raise BrokerRefused(
            ErrorCode.UNSUPPORTED_VERSION, said, hint=f"Kafka {GROUP_SETTINGS_SINCE} and later have"
        ) from None
    return tuple(sorted(settings, key=lambda s: (s.name not in GROUP_SETTINGS, s.name)))


def once_applied(
    look: Callable[[], tuple[Setting, ...]], changes: Mapping[str, str | None], within_s: float
) -> tuple[tuple[Setting, ...], tuple[str, ...]]:
    """Return the settings once `look` shows the changes or time is up, and the names not shown.

    Brokers answer once the controller has a change, and apply it a moment later.
    """
    now: tuple[Setting, ...] = ()
    late: tuple[str, ...] = ()
    for _ in Retry().looks(0.1, within_s):
        now = look()
        late = unlike(now, changes)
        if not late:
            break
    return now, late


def unlike(now: Iterable[Setting], changes: Mapping[str, str | None]) -> tuple[str, ...]:
    """Return the names of the changes that a group's settings do not show."""
    own = {setting.name: setting.value for setting in now if setting.origin == _ORIGINS[FROM_GROUP]}
    return tuple(name for name, value in changes.items() if not _equal(own.get(name), value))


def _equal(reported: str | None, value: str | None) -> bool:
    """Return whether a broker reports the wanted value, perhaps in its own form: 60000 for 060000."""
    if reported is None or value is None:
        return reported is value
    written = [[part.strip() for part in text.split(",")] for text in (reported, value)]
    numbers = [text.strip() for text in (reported, value)]
    return written[0] == written[1] or (
        all(text.isascii() and text.isdigit() for text in numbers) and int(reported) == int(value)
    )


def settings_of_groups(
    cluster: ClusterView, group_ids: Sequence[str], names: tuple[str, ...]
) -> Answers[dict[str, str]]:
    """Return each group's reported settings, or why they cannot be read: one request for all."""
    return _settings_of(cluster, GROUP, group_ids, names)


def settings_seen(
    cluster: ClusterView, group_ids: Sequence[str], names: tuple[str, ...]
) -> Answers[dict[str, str]]:
    """Return the same; the one reason for all of them where the request fails. No groups ask nothing."""
    if not group_ids:
        return {}
    return or_error(group_ids, lambda: settings_of_groups(cluster, group_ids, names))


def _settings_of(
    cluster: ClusterView, kind: int, of: Sequence[str], names: tuple[str, ...]
) -> Answers[dict[str, str]]:
    answers: Answers[dict[str, str]] = {}
    for result in _asked(cluster, None, kind, of, names):
        name = result.resource_name
        if result.error_code:
            needs = [(on_group if kind == GROUP else on_topic)(DESCRIBE_CONFIGS, name)]
            answers[name] = refused(result.error_code, f"settings of {name}", result.error_message, needs)
        else:
            answers[name] = {
                c.name: c.value for c in result.configs if c.name in names and c.value is not None
            }
    return answers


def _asked(
    cluster: ClusterView, node: int | None, kind: int, of: Sequence[str], names: tuple[str, ...] | None
) -> Sequence[DescribeConfigsResult]:
    """Return a broker's (None: any's) answer for each resource: these settings, or all for None."""
    from kgroup.protocol.messages.describe_configs import (
        DescribeConfigsRequest,
        DescribeConfigsResource,
        DescribeConfigsResponse,
    )

    resources = tuple(
        DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=names)
        for name in of
    )
    return cluster.ask_again(
        node, DescribeConfigsRequest(resources=resources), DescribeConfigsResponse
    ).results


def topic_settings(cluster: ClusterView, topics: Sequence[str], name: str) -> Answers[str]:
    """Return one setting of each topic that reports it, or why it cannot be read: one request for all."""
    return {
        topic: settings if isinstance(settings, KgroupError) else settings[name]
        for topic, settings in _settings_of(cluster, TOPIC, topics, (name,)).items()
        if isinstance(settings, KgroupError) or name in settings
    }


def broker_setting(cluster: ClusterView, node: int, name: str) -> str | None:
    """Return one setting of a broker; None when it does not report it."""
    settings = _describe(cluster, node, BROKER, str(node), (name,))
    return next((setting.value for setting in settings if setting.name == name), None)


def number_of(text: str | None) -> int | None:
    """Return a setting's number, None for what is not one: a broker may answer anything."""
    digits = (text or "").removeprefix("-")
    return int(text) if text and digits.isascii() and digits.isdigit() and len(digits) < 20 else None


def asked_once(cluster: ClusterView) -> Callable[[int, str], str | KgroupError | None]:
    """Return a function that reads each broker setting once; a refusal is cached too."""

    @cache
    def look(node: int, name: str) -> str | KgroupError | None:
        try:
            return broker_setting(cluster, node, name)
        except KgroupError as error:
            return error

    return look


def _describe(
    cluster: ClusterView, node: int | None, kind: int, name: str, keys: tuple[str, ...] | None
) -> list[Setting]:
    settings = []
    for result in _asked(cluster, node, kind, (name,), keys):
        if result.error_code:
            needs = on_group(DESCRIBE_CONFIGS, name) if kind == GROUP else on_cluster(DESCRIBE_CONFIGS)
            raise refused(result.error_code, f"settings of {name}", result.error_message, [needs])
        settings += [
            Setting(c.name, c.value, _ORIGINS.get(c.config_source, "default")) for c in result.configs
        ]
    return settings


def alter_group(
    cluster: ClusterView, group_id: str, changes: Mapping[str, Wanted], *, validate_only: bool = False
) -> None:
    """Change a group's settings, all or none. With `validate_only` only validate them.

    Raise BrokerRefused with INVALID_CONFIG for unknown names and for values out of the broker's bounds.
    """
    from kgroup.protocol.messages.incremental_alter_configs import (
        AlterableConfig,
        AlterConfigsResource,
        IncrementalAlterConfigsRequest,
        IncrementalAlterConfigsResponse,
    )

    configs = []
    for name, change in changes.items():
        if isinstance(change, Items):
            operation, value = APPEND if change.added else SUBTRACT, ",".join(change.names)
            configs.append(AlterableConfig(name=name, config_operation=operation, value=value))
        else:
            operation = DELETE if change is None else SET
            configs.append(AlterableConfig(name=name, config_operation=operation, value=change))
    resource = AlterConfigsResource(resource_type=GROUP, resource_name=group_id, configs=tuple(configs))
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=validate_only)

    # Setting the same values twice is the same as once, and so is a list that has an item, or lacks it.
    for response in cluster.ask_again(None, request, IncrementalAlterConfigsResponse).responses:
        if response.error_code:
            needs = [on_group(ALTER_CONFIGS, group_id)]
            raise refused(response.error_code, f"settings of group {group_id}", response.error_message, needs)
