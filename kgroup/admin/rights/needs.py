"""The rights each command needs to end with exit code 0: the least, as Kafka 4.3.1 checks them.

Read, Write and Delete imply Describe, AlterConfigs implies DescribeConfigs: an implied right is not named
again. An interop test gives a principal these rights and takes each away again.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from kgroup.domain import OFFSETS_TOPIC, SHARE_STATE_TOPIC
from kgroup.security.rights import (
    ALTER,
    ALTER_CONFIGS,
    CLUSTER,
    CREATE,
    DELETE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    EVERY,
    GROUP,
    READ,
    TOPIC,
    Right,
)

THE_GROUP, ITS_TOPICS, COMMITTED_TOPICS = "GROUP", "TOPICS-READ", "TOPICS-COMMITTED"
THE_TOPIC, NEW_GROUP = "TOPIC", "NEW-GROUP"
STAND_INS = {
    THE_GROUP: "the group",
    ITS_TOPICS: "the topics that its members read; every topic while it has none",
    COMMITTED_TOPICS: "the topics in which it has, or is given, committed offsets",
    THE_TOPIC: "the topic",
    NEW_GROUP: "the group that the clone makes",
}
"""Names that stand for others, and for which."""


@dataclass(frozen=True, slots=True)
class Need:
    """A right by template; `when` says in words where it is needed, "" for always."""

    operation: str
    resource: str
    name: str = ""
    when: str = ""

    def rights(self, names: Mapping[str, Collection[str]]) -> tuple[Right, ...]:
        """Return the rights meant, with the names of the stand-ins."""
        return tuple(Right(self.operation, self.resource, n) for n in names.get(self.name, (self.name,)))


@dataclass(frozen=True, slots=True)
class Needs:
    """The needs of a command, and why a right is wider than expected."""

    needs: tuple[Need, ...]
    note: str = ""

    def rights(self, names: Mapping[str, Collection[str]]) -> tuple[Right, ...]:
        """Return the rights, each once; of two that differ only in their name EVERY stands for both."""
        rights = dict.fromkeys(right for need in self.needs for right in need.rights(names))
        return tuple(
            right
            for right in rights
            if right.name == EVERY or Right(right.operation, right.resource, EVERY) not in rights
        )


def _of(*needs: Need, note: str = "") -> Needs:
    return Needs(needs, note)


WHEN_EMPTY = "the group is empty and has committed offsets"
WHEN_CONSUMER = "its members use the consumer protocol"
WHEN_EMPTY_OR_CONSUMER = "the group is empty, or its members use the consumer protocol"
WHEN_LIVE = "the group has members"
WHEN_LEFT = "a static member has left for now"
WHEN_GIVEN_UP = "a share group gave records up after several deliveries"
WHEN_SHARED = "a share group is among those that are read"
_GROUP = Need(DESCRIBE, GROUP, THE_GROUP)
_EVERY_GROUP = Need(DESCRIBE, GROUP, EVERY)
_TOPICS = Need(DESCRIBE, TOPIC, ITS_TOPICS)
_EVERY_TOPIC = Need(DESCRIBE, TOPIC, EVERY)
_RULES = Need(ALTER, CLUSTER)
_LOG = Need(READ, TOPIC, OFFSETS_TOPIC)
_DELIVERIES = Need(READ, TOPIC, SHARE_STATE_TOPIC, WHEN_SHARED)
_BROKERS = Need(DESCRIBE_CONFIGS, CLUSTER)
_TOPICS_OF_PLAN = Need(DESCRIBE, TOPIC, ITS_TOPICS, WHEN_EMPTY_OR_CONSUMER)
_OF_LIVE = Need(DESCRIBE_CONFIGS, CLUSTER, when=WHEN_LIVE)
_CHANGED = Need(READ, GROUP, THE_GROUP)
_WRITTEN = Need(READ, TOPIC, COMMITTED_TOPICS)
_HIDES_GROUPS = "brokers silently list only groups that may be described: only a right to all proves a list"
_HIDES_OFFSETS = "brokers silently omit offsets of topics that may not be described"

_REGISTERING = _of(
    Need(ALTER_CONFIGS, GROUP, THE_GROUP), _GROUP, Need(DESCRIBE, TOPIC, ITS_TOPICS, WHEN_CONSUMER)
)

_CHECKUP = _of(
    _GROUP,
    _TOPICS,
    _LOG,
    _DELIVERIES,
    Need(DESCRIBE_CONFIGS, CLUSTER, when=WHEN_EMPTY),
    Need(DESCRIBE_CONFIGS, GROUP, THE_GROUP, when=WHEN_LEFT),
    Need(DESCRIBE_CONFIGS, GROUP, THE_GROUP, when=WHEN_GIVEN_UP),
)
COMMANDS: dict[str, Needs] = {
    "list": _of(_EVERY_GROUP, _EVERY_TOPIC, note=_HIDES_GROUPS),
    "describe": _of(_GROUP, _TOPICS, note=_HIDES_OFFSETS),
    "lag": _of(_GROUP, _TOPICS, note=_HIDES_OFFSETS),
    "lag --time": _of(_GROUP, Need(READ, TOPIC, ITS_TOPICS)),
    "watch": _of(_GROUP, _TOPICS),
    "wait": _of(_GROUP, _TOPICS),
    "doctor": _CHECKUP,
    "explain": _CHECKUP,
    "coordinator": _of(_GROUP, Need(DESCRIBE, TOPIC, OFFSETS_TOPIC)),
    "remove-members": _of(_CHANGED, Need(DESCRIBE, TOPIC, ITS_TOPICS, WHEN_CONSUMER)),
    "reset-offsets": _of(_CHANGED, _WRITTEN, _EVERY_TOPIC, note=_HIDES_OFFSETS),
    "offsets export": _of(_GROUP, _EVERY_TOPIC, note=_HIDES_OFFSETS),
    "offsets import": _of(_CHANGED, _WRITTEN),
    "offsets delete": _of(Need(DELETE, GROUP, THE_GROUP), _WRITTEN),
    "offsets clone": _of(_GROUP, Need(READ, GROUP, NEW_GROUP), _WRITTEN, _EVERY_TOPIC, note=_HIDES_OFFSETS),
    "delete": _of(Need(DELETE, GROUP, THE_GROUP), _EVERY_TOPIC, note=_HIDES_OFFSETS),
    "config get": _of(Need(DESCRIBE_CONFIGS, GROUP, THE_GROUP)),
    "config set": _of(Need(ALTER_CONFIGS, GROUP, THE_GROUP)),
    "member register": _REGISTERING,
    "member unregister": _REGISTERING,
    "regex check": _of(_EVERY_TOPIC),
    "upgrade plan": _of(_GROUP, _TOPICS_OF_PLAN, _OF_LIVE),
    "upgrade execute": _of(_CHANGED, _TOPICS_OF_PLAN, _OF_LIVE),
    "upgrade watch": _of(_GROUP, _TOPICS),
    "upgrade run": _of(_CHANGED, _TOPICS, _OF_LIVE),
    "upgrade rehearse": _of(_GROUP, Need(DESCRIBE, TOPIC, COMMITTED_TOPICS), _BROKERS, _LOG),
    "downgrade plan": _of(_GROUP, _TOPICS_OF_PLAN, _OF_LIVE),
    "downgrade execute": _of(_CHANGED, _TOPICS_OF_PLAN, _OF_LIVE),
    "downgrade watch": _of(_GROUP, _TOPICS),
    "replay-log": _of(_LOG, _DELIVERIES),
    "replay-log --verify": _of(_LOG, _DELIVERIES, _EVERY_GROUP, _EVERY_TOPIC, note=_HIDES_GROUPS),
    "blame": _of(_LOG, _DELIVERIES),
    "offsets-topic stats": _of(_LOG),
    "offsets-topic top": _of(_LOG),
    "capture": _of(_LOG, _DELIVERIES),
    "record": _of(*_CHECKUP.needs, _EVERY_GROUP, note=_HIDES_GROUPS),
    "pipeline run": _of(_LOG, _DELIVERIES),
    "cluster status": _of(_EVERY_TOPIC),
    "cluster topics": _of(_EVERY_TOPIC),
    "cluster user add": _of(Need(ALTER, CLUSTER)),
    "cluster user list": _of(Need(DESCRIBE, CLUSTER)),
    "cluster user remove": _of(Need(ALTER, CLUSTER)),
    "cluster create-topic": _of(Need(CREATE, TOPIC, THE_TOPIC), Need(DESCRIBE, TOPIC, THE_TOPIC)),
    "cluster acl add": _of(_RULES),
    "cluster acl list": _of(Need(DESCRIBE, CLUSTER)),
    "cluster acl remove": _of(_RULES),
    "member run": _of(_CHANGED, Need(DESCRIBE, TOPIC, THE_TOPIC)),
}
"""By the words typed after `kgroup`, for one group. A pattern needs what `list` needs as well.

`explain` needs them where an option names a cluster, for each group of the lines.
"""

WITHOUT_CLUSTER = frozenset(
    {
        "mcp",
        "journal list",
        "journal show",
        "serve",
        "demo",
        "simulate",
        "config show",
        "context list",
        "context show",
        "context use",
        "completion",
        "docs",
        "options",
        "commands",
        "offsets-topic decode",
        "schema",
        "pipeline query",
        "pipeline sql",
        "pipeline vacuum",
        "pipeline plot",
        "pipeline events",
        "pipeline package",
    }
)
"""The commands that need no right: they ask no cluster, or one of their own."""
