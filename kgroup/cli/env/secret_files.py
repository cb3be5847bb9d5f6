"""Secrets in files of their own (`NAME.file`), beside where all secrets may be (secrets.py)."""

from pathlib import Path

from kgroup.cli.env.exposure import refuse_if_exposed
from kgroup.cli.env.setting_names import FILE_SUFFIX, Resolved
from kgroup.errors import ConfigError


def secret_or_file(settings: Resolved, name: str) -> str | None:
    """The secret `name`, wherever it is kept; of two places that of the stronger setting.

    ConfigError for a file that cannot be read, is empty, or that others may read.
    """
    from kgroup.cli.env.secrets import secret
    from kgroup.client.properties.catalogue import FROM_COMMAND, FROM_ENVIRONMENT

    file = settings.settings.get(name + FILE_SUFFIX)
    others = (settings.settings.get(name + suffix) for suffix in ("", FROM_COMMAND, FROM_ENVIRONMENT))
    strongest = min((other.rank for other in others if other is not None), default=None)
    if file is None or (strongest is not None and strongest <= file.rank):
        return secret(settings, name)
    return read_secret(Path(file.value).expanduser())


def read_secret(path: Path) -> str:
    """The text of a file of one secret, blanks around it left out; ConfigError as for `secret_or_file`."""
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(f"cannot read the secret in {path}: {reason}") from None
    refuse_if_exposed(path)
    if not text:
        raise ConfigError(f"the secret in {path} is empty")
    return text
