"""One thing said under two names: the stronger layer's way of saying it puts the weaker one's aside.

`-X ssl.ca.location` stands against a file's `ssl.truststore.location`, a command for a password against a
password. Two names in one layer contradict each other, which is told where they are used.
"""

from collections.abc import Iterable, Mapping

from kgroup.cli.env.known_settings import SECRETS
from kgroup.cli.env.setting_names import Setting
from kgroup.client.properties.catalogue import FROM_COMMAND, FROM_ENVIRONMENT

_TRUST = (
    ("ssl.truststore.location", "ssl.truststore.type", "ssl.truststore.password"),
    ("ssl.truststore.certificates", "ssl.truststore.type"),
    ("ssl.ca.location",),
    ("ssl.ca.pem",),
)
_SHOWN = (
    ("ssl.keystore.location", "ssl.keystore.type", "ssl.keystore.password"),
    ("ssl.keystore.key", "ssl.keystore.certificate.chain", "ssl.keystore.type"),
    ("ssl.certificate.location", "ssl.key.location"),
    ("ssl.certificate.pem", "ssl.key.pem"),
)
_TOKEN = (("sasl.oauthbearer.token",), ("sasl.oauthbearer.token.endpoint.url",))
_WAYS = (_TRUST, _SHOWN, _TOKEN)
"""Ways to say one thing: each the names that belong together, that which says it first."""


def without_overruled(settings: Mapping[str, Setting]) -> dict[str, Setting]:
    """The settings without those that a stronger layer says in another way."""
    kept = dict(settings)
    for name in SECRETS:
        _keep_strongest(kept, [(name + suffix,) for suffix in ("", FROM_COMMAND, FROM_ENVIRONMENT)])
    for ways in _WAYS:
        _keep_strongest(kept, ways)
    _drop_older_login(kept)
    return kept


def _keep_strongest(kept: dict[str, Setting], ways: Iterable[tuple[str, ...]]) -> None:
    ranks = {way: _rank(kept, way[0]) for way in ways}
    strongest = min(ranks.values())
    chosen = {name for way, rank in ranks.items() if rank == strongest for name in way}
    for way, rank in ranks.items():
        for name in () if rank == strongest else way:
            if name not in chosen and name in kept and kept[name].rank > strongest:
                del kept[name]


def _rank(kept: Mapping[str, Setting], name: str) -> float:
    """How strong the layer is that says it, by whatever source of a secret."""
    found = (
        kept[said].rank for suffix in ("", FROM_COMMAND, FROM_ENVIRONMENT) if (said := name + suffix) in kept
    )
    return min(found, default=float("inf"))


def _drop_older_login(kept: dict[str, Setting]) -> None:
    """A stronger sasl.jaas.config brings its own user; sasl.username beside it only where it is as strong."""
    jaas = kept.get("sasl.jaas.config")
    for name in ("sasl.username", "sasl.password", "sasl.password-command", "sasl.password-env"):
        if jaas is not None and name in kept and kept[name].rank > jaas.rank:
            del kept[name]
