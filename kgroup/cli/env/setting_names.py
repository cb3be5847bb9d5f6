"""The settings that choose a cluster, and values in force, each with its origin."""

from collections.abc import Mapping
from dataclasses import field

from kgroup.domain import value
from kgroup.durations import parse_duration

BOOTSTRAP, LOCAL, ZOOKEEPER, CONTEXT, COMMAND_CONFIG, TIMEOUT = (
    "bootstrap.servers",
    "local",
    "zookeeper.connect",
    "context",
    "command.config",
    "timeout",
)
REST = "rest.url"
DEFAULT = "default"
"""The origin of a value that nobody gave."""
FILE_SUFFIX = ".file"
NOTIFY_SECRET, REST_PASSWORD, REST_TOKEN = "notify.secret", "rest.password", "rest.token"


@value
class Setting:
    """One value in force. `rank` is the layer, 0 the strongest. Only `shown` prints it."""

    name: str
    value: str = field(repr=False)
    origin: str
    rank: int


@value
class Resolved:
    """All settings in force by name; `names_cluster` when one was chosen, if only by a context."""

    settings: Mapping[str, Setting]
    names_cluster: bool = True

    def get(self, name: str) -> str | None:
        setting = self.settings.get(name)
        return setting.value if setting else None

    def timeout_s(self) -> float:
        """Return the time limit of one operation: --timeout, else request.timeout.ms, else 30 s."""
        chosen = self.settings[TIMEOUT]
        request = self.settings.get("request.timeout.ms")
        if request is not None and request.rank < chosen.rank:
            chosen = request
        return parse_duration(chosen.value)
