"""The value of each setting in force, and its origin.

Precedence: flag > -X > environment > context > default. A command-config file ranks directly below the place
that named it, so `--command-config` overrides the environment and the environment overrides a context's file.
A context on the command line replaces the environment: its login must not go to the cluster of a variable.
"""

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path

from kgroup.cli.env.config import load_config
from kgroup.cli.env.known_settings import SECRETS
from kgroup.cli.env.properties import read_command_config
from kgroup.cli.env.setting_names import (
    BOOTSTRAP,
    COMMAND_CONFIG,
    CONTEXT,
    DEFAULT,
    KAFKAS_OWN,
    LOCAL,
    NOTIFY_SECRET,
    REST,
    REST_PASSWORD,
    REST_TOKEN,
    TIMEOUT,
    ZOOKEEPER,
    Resolved,
    Setting,
)
from kgroup.client.properties.catalogue import FROM_COMMAND, FROM_ENVIRONMENT
from kgroup.domain import value
from kgroup.errors import ConfigError

# Option of the shared set → (setting, flag).
_FLAGS = {
    "bootstrap_server": (BOOTSTRAP, "--bootstrap-server"),
    "local": (LOCAL, "--local"),
    "zookeeper": (ZOOKEEPER, "--zookeeper"),
    "rest": (REST, "--rest"),
    "context": (CONTEXT, "--context"),
    "command_config": (COMMAND_CONFIG, "--command-config"),
    "timeout": (TIMEOUT, "--timeout"),
}
_ENVIRONMENT = {
    "KGROUP_BOOTSTRAP_SERVER": BOOTSTRAP,
    "KGROUP_LOCAL": LOCAL,
    "KGROUP_CONTEXT": CONTEXT,
    "KGROUP_COMMAND_CONFIG": COMMAND_CONFIG,
    "KGROUP_NOTIFY_SECRET": NOTIFY_SECRET,
    "KGROUP_REST_USERNAME": "rest.username",
    "KGROUP_REST_PASSWORD": REST_PASSWORD,
    "KGROUP_REST_TOKEN": REST_TOKEN,
}
# Settings with several names, set by several layers.
_SECURED = ("ssl.", "sasl.", "https.", "zookeeper.", "rest.", "notify.")
_DEFAULTS = {"security.protocol": "PLAINTEXT", "client.id": "kgroup", TIMEOUT: "30s"}


@value
class _Layer:
    """The values of one origin; `origins` names a file for those that have another."""

    values: Mapping[str, str]
    origin: str
    origins: Mapping[str, str]


def resolve(
    options: Mapping[str, str], properties: Iterable[tuple[str, str]], environ: Mapping[str, str]
) -> Resolved:
    """Return every setting with its origin, from options, -X and the environment.

    Read the config file, and the command-config file if one is named.
    """
    settings: dict[str, Setting] = {}
    named = False
    for rank, layer in enumerate(_layers(options, dict(properties), environ)):
        named = named or layer.origin.startswith("context ") or bool(_names_of_clusters([layer]))
        for name, text in layer.values.items():
            origin = layer.origins.get(name, layer.origin)
            settings.setdefault(name, Setting(name, text, origin, rank))
    if any(setting.rank and name.startswith(_SECURED) for name, setting in settings.items()):
        settings = without_overruled(settings)
    return Resolved(settings, named)


def _layers(
    options: Mapping[str, str], properties: Mapping[str, str], environment: Mapping[str, str]
) -> Iterator[_Layer]:
    flags = {_FLAGS[k][0]: v for k, v in options.items()}
    strong = [_Layer(flags, "flag", dict(_FLAGS.values())), _Layer(_checked(properties), "-X", {})]
    if COMMAND_CONFIG in flags:
        strong.append(_file_layer(Path(flags[COMMAND_CONFIG]).expanduser()))
    by_flag = _names_of_clusters(strong)
    named = {e: environment[e] for e in _ENVIRONMENT if environment.get(e)}
    if CONTEXT in flags:
        # A context on the command line is a cluster with its login: of the environment only what is for none.
        _refuse_two("--context", by_flag)
        named = {e: v for e, v in named.items() if _ENVIRONMENT[e] == NOTIFY_SECRET}
    environ = {_ENVIRONMENT[e]: v for e, v in named.items()}
    weaker = [_Layer(environ, "environment", {_ENVIRONMENT[e]: e for e in named})]
    if COMMAND_CONFIG in environ and COMMAND_CONFIG not in flags:
        weaker.append(_file_layer(Path(environ[COMMAND_CONFIG]).expanduser()))
    by_environment = _names_of_clusters(weaker)
    if CONTEXT in environ and not by_flag:
        _refuse_two("KGROUP_CONTEXT", by_environment)
    yield from (*strong, *weaker)
    name = flags.get(CONTEXT) or (None if by_flag else environ.get(CONTEXT))
    # The default context is for its own cluster: its password must not go to one that a stronger layer names.
    if name is not None or not (by_flag or by_environment):
        yield from _of_context(name, COMMAND_CONFIG not in flags | environ, environment.get(KAFKAS_OWN))
    yield _Layer(_DEFAULTS, DEFAULT, {})


def _of_context(name: str | None, with_file: bool, brokers: str | None) -> Iterator[_Layer]:
    """Yield the layers of a context, by default the current one; without any, the brokers of other tools."""
    config = load_config()
    context_name = name or config.current
    if context_name:
        context = config.context(context_name)
        yield _Layer(context.values(), f"context {context.name}", {})
        if context.command_config and with_file:
            yield _file_layer(context.command_config)
    elif brokers:
        yield _Layer({BOOTSTRAP: brokers}, KAFKAS_OWN, {})


def _names_of_clusters(layers: list[_Layer]) -> list[str]:
    """Return where a cluster is named: an option, a variable or a file."""
    return [
        layer.origins.get(name, f"{name} ({layer.origin})")
        for layer in layers
        for name in (BOOTSTRAP, LOCAL, ZOOKEEPER, REST)
        if name in layer.values
    ]


def _refuse_two(context: str, others: list[str]) -> None:
    """Raise ConfigError where a context and something else name a cluster: one would get the other's login.

    --rest and --zookeeper are other ways to the context's cluster, whose properties hold the login for them.
    """
    others = [other for other in others if other not in ("--rest", "--zookeeper")]
    if others:
        raise ConfigError(f"{context} and {others[0]} both name a cluster", "give one of them")


def _file_layer(path: Path) -> _Layer:
    return _Layer(_canonical(read_command_config(path)), str(path), {})


def _canonical(values: Mapping[str, str]) -> dict[str, str]:
    if not values:
        return {}
    from kgroup.client.properties.catalogue import ALIASES

    return {ALIASES.get(key, key): value for key, value in values.items()}


def _checked(properties: Mapping[str, str]) -> dict[str, str]:
    if not properties:
        return {}
    from kgroup.cli.env.known_settings import KNOWN, NEVER_IN_ARGV

    values = _canonical(properties)
    for name in sorted(values.keys() & NEVER_IN_ARGV):
        variable = f"KGROUP_{name.upper().replace('.', '_')}"
        where = f"set {variable}" if variable in _ENVIRONMENT else "write it into the config file"
        raise ConfigError(f"-X {name}: every process may read a command line", f"{where}, or name a file")
    unknown = sorted(values.keys() - KNOWN)
    if unknown:
        near = get_close_matches(unknown[0][:_LONGEST_NAME], KNOWN, 1)
        hint = f"did you mean {near[0]}?" if near else "kgroup docs security lists them"
        raise ConfigError(f"-X {unknown[0]}: kgroup has no such setting", hint)
    return values


_LONGEST_NAME = 100
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
"""Alternative ways to set one thing: each the names that belong together, the decisive one first."""


def without_overruled(settings: Mapping[str, Setting]) -> dict[str, Setting]:
    """Return the settings without those that a stronger layer sets in another way."""
    kept = dict(settings)
    for name in SECRETS:
        _keep_strongest(kept, [(name + suffix,) for suffix in ("", FROM_COMMAND, FROM_ENVIRONMENT)])
    for ways in _WAYS:
        _keep_strongest(kept, ways)
    # A stronger sasl.jaas.config brings its own user.
    jaas = kept.get("sasl.jaas.config")
    for name in ("sasl.username", "sasl.password", "sasl.password-command", "sasl.password-env"):
        if jaas is not None and name in kept and kept[name].rank > jaas.rank:
            del kept[name]
    return kept


def _keep_strongest(kept: dict[str, Setting], ways: Iterable[tuple[str, ...]]) -> None:
    ranks: dict[tuple[str, ...], float] = {}
    for way in ways:
        # The decisive setting, from any source of a secret.
        names = (way[0] + suffix for suffix in ("", FROM_COMMAND, FROM_ENVIRONMENT))
        ranks[way] = min((kept[name].rank for name in names if name in kept), default=float("inf"))
    strongest = min(ranks.values())
    chosen = {name for way, rank in ranks.items() if rank == strongest for name in way}
    for way, rank in ranks.items():
        for name in () if rank == strongest else way:
            if name not in chosen and name in kept and kept[name].rank > strongest:
                del kept[name]
