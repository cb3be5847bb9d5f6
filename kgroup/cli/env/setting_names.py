"""The settings that choose a cluster, and values in force, each with its origin."""

from collections.abc import Mapping
from dataclasses import field

from kgroup.domain import value
from kgroup.durations import parse_duration
from kgroup.errors import ConfigError
from kgroup.numbers import INT32_MAX, whole_number

BOOTSTRAP, LOCAL, ZOOKEEPER, CONTEXT, COMMAND_CONFIG, TIMEOUT = (
    "bootstrap.servers",
    "local",
    "zookeeper.connect",
    "context",
    "command.config",
    "timeout",
)
REST, REQUEST_TIMEOUT = "rest.url", "request.timeout.ms"
DEFAULT = "default"
"""The origin of a value that nobody gave."""
KAFKAS_OWN = "KAFKA_BOOTSTRAP_SERVERS"
"""A variable of other tools, which names the cluster when nothing of kgroup's does."""
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

    def cluster(self) -> Setting | None:
        """Return the setting that names the cluster, None for the embedded one in the user's data folder.

        Raise ConfigError where two name one.
        """
        local, remote = self.settings.get(LOCAL), self.settings.get(BOOTSTRAP)
        if local and remote and local.rank == remote.rank:
            raise ConfigError(f"{local.origin} and {remote.origin} both name a cluster", "give one of them")
        return min(filter(None, (local, remote)), key=lambda s: s.rank, default=None)

    def cluster_line(self) -> str:
        """Return which cluster is used and why, for people: `cluster: broker:9092 (context prod)`."""
        chosen = self.cluster()
        if chosen is None:
            return "cluster: embedded in the user's data folder (none is named)"
        folder = chosen.value or "the user's data folder"
        return f"cluster: {folder if chosen.name == BOOTSTRAP else f'embedded in {folder}'} ({chosen.origin})"

    def get(self, name: str) -> str | None:
        setting = self.settings.get(name)
        return setting.value if setting else None

    def timeout_s(self) -> float:
        """Return the time limit of one operation: --timeout, else request.timeout.ms, else 30 s.

        Raise ConfigError for one that no request can carry: brokers read 32 bits of milliseconds.
        """
        chosen = self.settings[TIMEOUT]
        request = self.settings.get(REQUEST_TIMEOUT)
        if request is not None and request.rank < chosen.rank:
            where = f"{REQUEST_TIMEOUT} ({request.origin})"
            return whole_number(request.value.strip(), where, most=INT32_MAX) / 1000
        where = chosen.origin if chosen.origin == "--timeout" else f"timeout ({chosen.origin})"
        seconds = parse_duration(chosen.value, where)
        if seconds * 1000 > INT32_MAX:
            raise ConfigError(f"{where}: {chosen.value} is too long", "at most 24d")
        return seconds
