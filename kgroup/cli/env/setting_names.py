"""The settings there are, and their values in force, each with where it came from."""

from collections.abc import Mapping
from dataclasses import dataclass

from kgroup.cli.env.durations import parse_duration
from kgroup.client.properties import catalogue
from kgroup.client.properties.catalogue import FROM_COMMAND, FROM_ENVIRONMENT

BOOTSTRAP, LOCAL, ZOOKEEPER, CONTEXT, COMMAND_CONFIG, TIMEOUT = (
    "bootstrap.servers",
    "local",
    "zookeeper.connect",
    "context",
    "command.config",
    "timeout",
)
_OF_ZOOKEEPER = (
    "zookeeper.sasl.username",
    "zookeeper.sasl.password",
    "zookeeper.ssl.client.enable",
    "zookeeper.ssl.ca.location",
    "zookeeper.ssl.certificate.location",
    "zookeeper.ssl.key.location",
    "zookeeper.ssl.key.password",
    "zookeeper.ssl.endpoint.identification.algorithm",
)
REST = "rest.url"
FILE_SUFFIX = ".file"
NOTIFY_SECRET, REST_PASSWORD, REST_TOKEN = "notify.secret", "rest.password", "rest.token"
NEVER_IN_ARGV = frozenset({NOTIFY_SECRET, REST_PASSWORD, REST_TOKEN, "rest.ssl.key.password"})
"""Secrets of kgroup's own, which no other tool's habit puts into a command line."""
_OF_REST = (
    "rest.username",
    REST_PASSWORD,
    REST_PASSWORD + FILE_SUFFIX,
    REST_TOKEN,
    REST_TOKEN + FILE_SUFFIX,
    "rest.ssl.ca.location",
    "rest.ssl.certificate.location",
    "rest.ssl.key.location",
    "rest.ssl.key.password",
    NOTIFY_SECRET,
    NOTIFY_SECRET + FILE_SUFFIX,
)
SECRETS = catalogue.SECRET | {"zookeeper.sasl.password", "zookeeper.ssl.key.password"} | NEVER_IN_ARGV
GUARDED = SECRETS - catalogue.CERTIFICATES_ONLY
"""What makes a file its owner's alone."""
KNOWN = catalogue.KNOWN | {
    BOOTSTRAP,
    "client.id",
    "request.timeout.ms",
    *_OF_ZOOKEEPER,
    *_OF_REST,
    *(name + suffix for name in SECRETS for suffix in (FROM_COMMAND, FROM_ENVIRONMENT)),
}


HIDDEN = "********"
_HARMLESS = catalogue.HARMLESS | {
    BOOTSTRAP,
    "client.id",
    "request.timeout.ms",
    *(name for name in (*_OF_ZOOKEEPER, *_OF_REST) if name not in SECRETS),
    *(name + FROM_ENVIRONMENT for name in SECRETS),
    LOCAL,
    ZOOKEEPER,
    REST,
    CONTEXT,
    COMMAND_CONFIG,
    TIMEOUT,
}


def shown(name: str, value: str) -> str:
    """The value, or HIDDEN: only settings known to be harmless are ever printed.

    A file for other clients holds properties kgroup does not know, and any of them may be a secret.
    """
    return value if name in _HARMLESS else HIDDEN


@dataclass(frozen=True, slots=True)
class Setting:
    """One value in force; `shown` is what may be printed. `rank` is the layer, 0 the strongest."""

    name: str
    value: str
    origin: str
    rank: int

    @property
    def shown(self) -> str:
        return shown(self.name, self.value)


@dataclass(frozen=True, slots=True)
class Resolved:
    """All settings in force by name; `names_cluster` when somebody chose one, be it by a context."""

    settings: Mapping[str, Setting]
    names_cluster: bool = True

    def get(self, name: str) -> str | None:
        setting = self.settings.get(name)
        return setting.value if setting else None

    def timeout_s(self) -> float:
        """How long one operation may take: --timeout, else request.timeout.ms, else 30 s."""
        chosen = self.settings[TIMEOUT]
        request = self.settings.get("request.timeout.ms")
        if request is not None and request.rank < chosen.rank:
            chosen = request
        return parse_duration(chosen.value)
