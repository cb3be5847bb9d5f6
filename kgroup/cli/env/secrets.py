"""Secrets that kgroup takes from its environment, its config file or a file of their own, never from argv."""

import os
import stat
from pathlib import Path

from kgroup.cli.env.setting_names import FILE_SUFFIX, Resolved
from kgroup.errors import ConfigError


def secret(settings: Resolved, name: str) -> str | None:
    """The secret `name`, or what is in the file that `name.file` names; the stronger of them where both are.

    ConfigError for a file that cannot be read, is empty, or that others may read.
    """
    own, file = settings.settings.get(name), settings.settings.get(name + FILE_SUFFIX)
    if file is None or (own is not None and own.rank <= file.rank):
        return own.value if own else None
    return read_secret(Path(file.value).expanduser())


def read_secret(path: Path) -> str:
    """The text of a file of one secret, blanks around it left out; ConfigError as for `secret`."""
    try:
        text = path.read_text(encoding="utf-8").strip()
        mode = stat.S_IMODE(path.stat().st_mode)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(f"cannot read the secret in {path}: {reason}") from None
    if os.name == "posix" and path.is_file() and mode & 0o077:
        raise ConfigError(
            f"{path} holds a secret and others may read it (mode {mode:04o})", f"chmod 600 {path}"
        )
    if not text:
        raise ConfigError(f"the secret in {path} is empty")
    return text
