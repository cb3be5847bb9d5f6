"""Addresses of ensembles, and valid names of nodes."""

import re
from dataclasses import dataclass

from kgroup.client.settings import address_text
from kgroup.errors import ConfigError

DEFAULT_PORT = 2181
LONGEST_NAME = 249
"""Bytes that Kafka allows in topic names; group ids of its age keep to them."""
_REFUSED = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\ud800-\\uf8ff\\ufff0-\\U0010ffff]")
"""What ZooKeeper's PathUtils rejects; it reads UTF-16, where code points above U+FFFF are surrogates."""
_SHAPE = "write HOST:PORT[,HOST:PORT…][/chroot]"


@dataclass(frozen=True, slots=True)
class Ensemble:
    """The servers of an ensemble, and the node below which all paths lie ("" for the root)."""

    servers: tuple[tuple[str, int], ...]
    chroot: str = ""

    def __str__(self) -> str:
        return ",".join(address_text(*server) for server in self.servers) + self.chroot


def parse_ensemble(text: str) -> Ensemble:
    """Return the ensemble of `host:port,[::1]:2181/chroot` (default port 2181); ConfigError otherwise."""
    servers, slash, below = text.strip().partition("/")
    addresses = tuple(_server(part.strip(), text) for part in servers.split(",") if part.strip())
    if not addresses:
        raise ConfigError(f"{text!r} names no ZooKeeper server", _SHAPE)
    parts = below.rstrip("/").split("/") if slash and below.strip("/") else []
    if not all(map(is_name, parts)):
        raise ConfigError(f"{text!r}: {slash + below!r} is no chroot", _SHAPE)
    return Ensemble(addresses, "".join(f"/{part}" for part in parts))


def is_name(text: str) -> bool:
    """Return whether a node may have this name: no tree has a group or topic of another name."""
    if text in ("", ".", "..") or "/" in text or len(text.encode(errors="replace")) > LONGEST_NAME:
        return False
    return not _REFUSED.search(text)


def path_of(*names: str) -> str:
    """Return the path of a node below the chroot."""
    return "".join(f"/{name}" for name in names) or "/"


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
