"""Files with secrets that others may read: kgroup's own is refused, others cause a warning."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from kgroup.cli.env.known_settings import GUARDED
from kgroup.cli.env.setting_names import Resolved
from kgroup.errors import ConfigError

_KEYS = (
    "ssl.keystore.location",
    "ssl.certificate.location",
    "ssl.key.location",
    "sasl.oauthbearer.assertion.private.key.file",
    "zookeeper.ssl.certificate.location",
    "zookeeper.ssl.key.location",
)
"""May hold a private key; one with a password may lie about."""
_KEPT_IN_FILES = ("sasl.kerberos.keytab", "sasl.oauthbearer.assertion.file")


def others_may_read(path: Path) -> int | None:
    """Return the mode of a file that group or others may read; None for any other, or no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    mode = stat.S_IMODE(status.st_mode)
    return mode if os.name == "posix" and stat.S_ISREG(status.st_mode) and mode & 0o077 else None


def refuse_if_exposed(path: Path) -> None:
    """Raise ConfigError for kgroup's own file, which holds secrets, when others may read it."""
    mode = others_may_read(path)
    if mode is not None:
        raise ConfigError(
            f"{path} holds secrets and others may read it (mode {mode:04o})", f"chmod 600 {path}"
        )


def warnings(resolved: Resolved) -> Iterator[str]:
    """Yield a line for each file with secrets in force that others may read."""
    files = set()
    for name, setting in resolved.settings.items():
        # The settings of a properties file have its path as their origin.
        if name in GUARDED:
            files.add(Path(setting.origin).expanduser())
        if name in _KEPT_IN_FILES or (name in _KEYS and _holds_open_key(setting.value)):
            files.add(Path(setting.value).expanduser())
        if name == "sasl.oauthbearer.token.endpoint.url" and setting.value.lower().startswith("file:"):
            files.add(Path(unquote(urlsplit(setting.value).path)))
    for path in sorted(files):
        mode = others_may_read(path)
        if mode is not None:
            yield f"warning: {path} holds secrets and others may read it (mode {mode:04o}); chmod 600 {path}"


def _holds_open_key(location: str) -> bool:
    """Return whether a file has a private key without a password; PKCS12 and JKS stores have none."""
    try:
        with Path(location).expanduser().open("rb") as file:
            text = file.read(1 << 20)
    except OSError:
        return False
    return b"PRIVATE KEY-----" in text and b"ENCRYPTED" not in text
