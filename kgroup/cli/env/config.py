"""The config file with its contexts, and the cluster that a command uses."""

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from kgroup.cli.env.setting_names import BOOTSTRAP, LOCAL, TIMEOUT, Resolved
from kgroup.client.security import PLAINTEXT
from kgroup.domain import Document, value
from kgroup.errors import ConfigError
from kgroup.text_files import load_yaml, read_text

if TYPE_CHECKING:
    from kgroup.client.settings import ConnectionSettings

_PASSWORD = {"password-command": "sasl.password-command", "password-env": "sasl.password-env"}
"""Short for the same among the properties."""
_CONTEXT_KEYS = {"bootstrap-servers", "local", "command-config", "timeout", "properties", *_PASSWORD}
_CURRENT_LINE = re.compile(r"^current-context:.*$", re.MULTILINE)


@value
class LocalTarget:
    """The embedded cluster whose data is in `directory`."""

    directory: Path


@value
class RemoteTarget:
    """A cluster reached over the network."""

    connection: "ConnectionSettings"


Target = LocalTarget | RemoteTarget


@value
class Context:
    """A named cluster of the config file; `properties` as -X takes them."""

    name: str
    bootstrap_servers: str | None = None
    local: str | None = None
    command_config: Path | None = None
    timeout: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)

    def values(self) -> dict[str, str]:
        """Return the context's own settings by name, its command-config file not read."""
        own = {BOOTSTRAP: self.bootstrap_servers, LOCAL: self.local, TIMEOUT: self.timeout}
        return {**self.properties, **{k: v for k, v in own.items() if v is not None}}

    @property
    def summary(self) -> str:
        if self.bootstrap_servers:
            return self.bootstrap_servers
        return f"embedded in {self.local}" if self.local else "embedded in the user's data folder"


@value
class Config:
    """The config file as read; `current` is the context used when none is named."""

    path: Path
    current: str | None
    contexts: Mapping[str, Context]

    def context(self, name: str) -> Context:
        if name not in self.contexts:
            known = ", ".join(sorted(self.contexts)) or "none"
            raise ConfigError(f"there is no context {name!r} in {self.path}", f"known contexts: {known}")
        return self.contexts[name]


def config_path() -> Path:
    """Return the config file in the platform's config folder."""
    from platformdirs import user_config_path

    return user_config_path("kgroup") / "config.yaml"


def default_local_directory() -> Path:
    """Return the data folder of the embedded cluster when none is named."""
    from platformdirs import user_data_path

    return user_data_path("kgroup") / "cluster"


def load_config() -> Config:
    """Return the config file, or an empty one when there is none.

    Raise ConfigError for a file that is malformed, or that holds secrets others may read.
    """
    path = config_path()
    try:
        text = read_text(path, f"the config file {path}", regular=True)
    except ConfigError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return Config(path, None, {})
        raise
    document = _parse(text, path)
    raw = document.get("contexts") or {}
    if not isinstance(raw, dict):
        raise ConfigError(f"contexts in {path} is not a mapping of names")
    contexts = {str(name): _context(str(name), value, path) for name, value in raw.items()}
    from kgroup.cli.env.known_settings import GUARDED

    if any(GUARDED & c.properties.keys() for c in contexts.values()):
        from kgroup.cli.env.exposure import refuse_if_exposed

        refuse_if_exposed(path)
    return Config(path, _text(document, "current-context", str(path)), contexts)


def _parse(text: str, path: Path) -> Document:
    document = load_yaml(text, str(path), scalars=False)
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigError(f"{path} is not a mapping", "its keys are current-context and contexts")
    return document


def _context(name: str, value: object, path: Path) -> Context:
    if not isinstance(value, dict):
        raise ConfigError(f"context {name!r} in {path} is not a mapping")
    unknown = sorted(str(k) for k in value.keys() - _CONTEXT_KEYS)
    if unknown:
        raise ConfigError(
            f"context {name!r} in {path} has an unknown key {unknown[0]!r}",
            "known: " + ", ".join(sorted(_CONTEXT_KEYS)),
        )
    if value.get("bootstrap-servers") and value.get("local"):
        raise ConfigError(f"context {name!r} in {path} has both bootstrap-servers and local", "keep one")
    where = f"context {name!r} in {path}"
    file = _text(value, "command-config", where)
    servers = value.get("bootstrap-servers")
    if not isinstance(servers, list):
        servers = _text(value, "bootstrap-servers", where)
    elif all(isinstance(server, str) for server in servers):
        servers = ",".join(servers)
    else:
        raise ConfigError(f"bootstrap-servers of {where} is not a list of HOST:PORT")
    local, timeout = _text(value, "local", where), _text(value, "timeout", where)
    given = value.get("properties") or {}
    if not isinstance(given, dict):
        raise ConfigError(f"properties of {where} is not a mapping of settings")
    from kgroup.cli.env.known_settings import KNOWN
    from kgroup.client.properties.catalogue import ALIASES

    properties = {ALIASES.get(str(key), str(key)): _property(given, str(key), where) for key in given}
    properties |= {name: _property(value, key, where) for key, name in _PASSWORD.items() if key in value}
    strange = sorted(properties.keys() - KNOWN)
    if strange:
        raise ConfigError(f"{where}: kgroup has no setting {strange[0]!r}")
    command_config = (path.parent / Path(file).expanduser()) if file else None
    return Context(name, servers, local, command_config, timeout, properties)


def _property(given: Document, key: str, where: str) -> str:
    """Return a setting's value; a command may be a list of its words."""
    raw = given.get(key)
    if key.endswith("-command") and isinstance(raw, list):
        return shlex.join(str(word) for word in raw)
    return _text(given, key, where) or ""


def _text(value: Document, key: str, where: str) -> str | None:
    """Return a single value as text; YAML turns some text into booleans."""
    raw = value.get(key)
    if raw is None or isinstance(raw, str):
        return raw
    if isinstance(raw, bool):
        return str(raw).lower()
    raise ConfigError(f"{key} of {where} is not a single value", f"write {key}: VALUE; quotes keep it a text")


def write_current(config: Config, name: str) -> None:
    """Make context `name` current: one line of the file changes, its comments stay; mode becomes 0600."""
    config.context(name)
    import json

    line = f"current-context: {json.dumps(name, ensure_ascii=False)}"
    text = read_text(config.path, f"the config file {config.path}", regular=True)
    changed, count = _CURRENT_LINE.subn(lambda _: line, text, count=1)
    if not count:
        changed = f"{line}\n{text}"
    if _parse(changed, config.path).get("current-context") != name:
        raise ConfigError(f"{config.path} has no line to change", f"write current-context: {name} into it")
    temporary = config.path.with_suffix(".tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(changed)
        temporary.replace(config.path)
    except OSError as error:
        raise ConfigError(f"cannot write the config file {config.path}: {error.strerror}") from None


def target_of(resolved: Resolved, *, fetch: bool = True) -> Target:
    """Return the cluster the settings name; by default the embedded one in the user's data folder.

    Without `fetch` it is only for display: secrets that are kept elsewhere are not fetched.
    """
    named = resolved.cluster()
    if named is not None and named.name == BOOTSTRAP:
        from kgroup.client.settings import parse_bootstrap

        return RemoteTarget(connection_to(parse_bootstrap(named.value), resolved, fetch=fetch))
    directory = named.value if named else ""
    return LocalTarget(Path(directory).expanduser() if directory else default_local_directory())


def connection_to(
    addresses: tuple[tuple[str, int], ...], resolved: Resolved, *, fetch: bool = True
) -> "ConnectionSettings":
    """Return how to reach brokers at these addresses, with the security and limits of the settings."""
    from kgroup.client.settings import ConnectionSettings

    security = PLAINTEXT
    if (resolved.get("security.protocol") or "PLAINTEXT").upper() != "PLAINTEXT":
        from kgroup.cli.env.secrets import given
        from kgroup.client.properties.security import security_of

        security = security_of(given(resolved, fetch=fetch))
    return ConnectionSettings(
        bootstrap=addresses,
        security=security,
        client_id=resolved.get("client.id") or "kgroup",
        request_timeout_s=resolved.timeout_s(),
    )
