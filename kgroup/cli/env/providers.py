"""Kafka's own config providers: `${env:NAME}`, `${file:PATH:KEY}` and `${directory:PATH:FILE}` in properties.

KIP-297 and KIP-887; Strimzi and others mount secrets for them. A provider is named in `config.providers`, and
its class says what it reads.
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from kgroup.cli.env.known_settings import KNOWN
from kgroup.client.properties.catalogue import ALIASES
from kgroup.errors import ConfigError

PROVIDERS = "config.providers"
_REFERENCE = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")
_Find = Callable[[str, str], str | None]


def resolved(
    values: Mapping[str, str], source: str, parse: Callable[[bytes], Mapping[str, str]]
) -> dict[str, str]:
    """Return properties with what their config providers hold, `parse` reading the files of properties.

    A reference to a provider that is not declared stays text, as in Kafka. Raise ConfigError that names
    `source` for one that cannot be resolved: Kafka would use the reference itself as the password.
    """
    names = [name.strip() for name in values.get(PROVIDERS, "").split(",") if name.strip()]
    if not names:
        return dict(values)

    def replaced(match: re.Match[str]) -> str:
        name, path, key = match[1], match[2] or "", match[3]
        if name not in names:
            return match[0]
        try:
            value = _provider(values, name, parse)(path, key)
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
            raise ConfigError(f"{source}: {match[0]} cannot be read: {reason}") from None
        if value is None:
            raise ConfigError(
                f"{source}: {match[0]} names nothing", f"{PROVIDERS} {name}: is {key} there, and allowed?"
            )
        return value

    # Properties of other clients are not read, and may refer to what is not on this machine.
    return {
        key: _REFERENCE.sub(replaced, text) if ALIASES.get(key, key) in KNOWN else text
        for key, text in values.items()
    }


def _provider(values: Mapping[str, str], name: str, parse: Callable[[bytes], Mapping[str, str]]) -> _Find:
    prefix = f"{PROVIDERS}.{name}"
    class_name = values.get(f"{prefix}.class", "").strip()
    kind = class_name.rpartition(".")[2]
    allowed = values.get(f"{prefix}.param.allowed.paths", "")
    if kind == "EnvVarConfigProvider":
        pattern = values.get(f"{prefix}.param.allowlist.pattern", ".*")
        return lambda _, key: os.environ.get(key) if re.fullmatch(pattern, key) else None
    if kind == "FileConfigProvider":
        return lambda path, key: parse(_allowed(Path(path), allowed).read_bytes()).get(key)
    if kind == "DirectoryConfigProvider":
        return lambda path, key: _allowed(Path(path) / key, allowed).read_text(encoding="utf-8")
    raise ConfigError(
        f"{prefix}.class is {class_name or 'not set'}, which kgroup cannot run",
        "EnvVarConfigProvider, FileConfigProvider and DirectoryConfigProvider are built in",
    )


def _allowed(path: Path, allowed: str) -> Path:
    """Return a file that lies below an allowed path, of which none allows all; raise OSError otherwise."""
    below = [Path(folder.strip()).resolve() for folder in allowed.split(",") if folder.strip()]
    if below and not any(path.resolve().is_relative_to(folder) for folder in below):
        raise PermissionError(None, "not below allowed.paths")
    return path
