"""Every setting there is: which are secret, which may be printed."""

import re
from collections.abc import Iterable, Iterator

from kgroup.cli.env.setting_names import (
    BOOTSTRAP,
    COMMAND_CONFIG,
    CONTEXT,
    FILE_SUFFIX,
    LOCAL,
    NOTIFY_SECRET,
    REST,
    REST_PASSWORD,
    REST_TOKEN,
    TIMEOUT,
    ZOOKEEPER,
)
from kgroup.client.properties import catalogue
from kgroup.client.properties.catalogue import FROM_COMMAND, FROM_ENVIRONMENT

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
NEVER_IN_ARGV = frozenset({NOTIFY_SECRET, REST_PASSWORD, REST_TOKEN, "rest.ssl.key.password"})
"""Secrets of kgroup's own, which by custom of no other tool go into a command line."""
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
"""Settings that make a file private to its owner."""
KNOWN = catalogue.KNOWN | {
    BOOTSTRAP,
    "client.id",
    "request.timeout.ms",
    *_OF_ZOOKEEPER,
    *_OF_REST,
    *(name + suffix for name in SECRETS for suffix in (FROM_COMMAND, FROM_ENVIRONMENT)),
}


def misspelt(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield names of no setting that are nearly one, and that one.

    Others are not named: a file for other clients holds many properties that kgroup does not have.
    """
    unknown = sorted(set(names) - KNOWN - {LOCAL, ZOOKEEPER, REST, CONTEXT, COMMAND_CONFIG, TIMEOUT})
    if unknown:
        from difflib import get_close_matches

        for name in unknown:
            near = get_close_matches(name, KNOWN, 1, _NEARLY)
            if near:
                yield name, near[0]


_NEARLY = 0.87
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
    """Return the value, or HIDDEN: only settings known to be harmless are ever printed.

    A file for other clients holds properties kgroup does not know, and any of them may be a secret.
    """
    return value if name in _HARMLESS or _OF_PROVIDERS.fullmatch(name) else HIDDEN


_OF_PROVIDERS = re.compile(r"config\.providers(\.[^.]+\.(class|param\.(allowed\.paths|allowlist\.pattern)))?")
"""Kafka's config providers: which there are, and what they may read."""
