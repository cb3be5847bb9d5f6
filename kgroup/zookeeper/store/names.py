"""Where an ensemble is, and what its nodes may be called."""

from __future__ import annotations

from dataclasses import dataclass

from kgroup.errors import ConfigError

DEFAULT_PORT = 2181
LONGEST_NAME = 249
"""Bytes of a name that Kafka takes for a topic; group ids of its age keep to it."""
_SHAPE = "write HOST:PORT[,HOST:PORT…][/chroot]"


@dataclass(frozen=True, slots=True)
class Ensemble:
    """The servers of an ensemble, and below which node everything asked for lies ("" for the root)."""

    servers: tuple[tuple[str, int], ...]
    chroot: str = ""

    def __str__(self) -> str:
        return ",".join(_address_text(*server) for server in self.servers) + self.chroot


def parse_ensemble(text: str) -> Ensemble:
    """The ensemble that `host:port,[::1]:2181/chroot` names, a missing port 2181; ConfigError otherwise."""
    servers, slash, below = text.strip().partition("/")
    found = tuple(_server(part.strip(), text) for part in servers.split(",") if part.strip())
    if not found:
        raise ConfigError(f"{text!r} names no ZooKeeper server", _SHAPE)
    parts = below.rstrip("/").split("/") if slash and below.strip("/") else []
    if not all(map(is_name, parts)):
        raise ConfigError(f"{text!r}: {slash + below!r} is no chroot", _SHAPE)
    return Ensemble(found, "".join(f"/{part}" for part in parts))


def is_name(text: str) -> bool:
    """Whether a node may be called so: a group or topic of another name is in no tree."""
    if text in ("", ".", "..") or "/" in text or len(text.encode(errors="replace")) > LONGEST_NAME:
        return False
    return not any(_is_refused(character) for character in text)


def path_of(*names: str) -> str:
    """The path of a node below the chroot."""
    return "".join(f"/{name}" for name in names) or "/"


def _is_refused(character: str) -> bool:
    # ZooKeeper's PathUtils; surrogates are no text at all, and not all of them arrive as such.
    code = ord(character)
    return code <= 0x1F or 0x7F <= code <= 0x9F or 0xD800 <= code <= 0xF8FF or 0xFFF0 <= code <= 0xFFFF


def _server(text: str, whole: str) -> tuple[str, int]:
    if text.startswith("["):
        host, closed, rest = text[1:].partition("]")
        port = rest.removeprefix(":") if closed else "?"
    else:
        host, _, port = text.partition(":")
    number = port or str(DEFAULT_PORT)
    if not host or not (number.isascii() and number.isdigit()) or not 0 < int(number) < 65536:
        raise ConfigError(f"{whole!r}: {text!r} is no ZooKeeper server", _SHAPE)
    return host, int(number)


def _address_text(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
