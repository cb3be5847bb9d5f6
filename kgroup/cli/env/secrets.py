"""Secrets that are kept elsewhere: printed by a command (`NAME-command`), or in a variable (`NAME-env`).

Some may have a file of their own (`NAME.file`). They are fetched when a connection is made, so a command that
needs none opens no safe.
"""

import os
import shlex
from pathlib import Path

from kgroup.cli.env.exposure import refuse_if_exposed
from kgroup.cli.env.known_settings import NEVER_IN_ARGV, SECRETS
from kgroup.cli.env.setting_names import FILE_SUFFIX, NOTIFY_SECRET, Resolved
from kgroup.client.auth.printed import printed_by
from kgroup.client.properties.catalogue import FROM_COMMAND, FROM_ENVIRONMENT
from kgroup.client.properties.given import Given
from kgroup.errors import ConfigError
from kgroup.text_files import read_text

_RENEWED = "sasl.oauthbearer.token" + FROM_COMMAND
"""Run again for each token, so not here."""
_LEFT = "left where it is"


def given(resolved: Resolved, *, fetch: bool = True) -> Given:
    """Return the client's settings with their secrets fetched; raise ConfigError when one is unavailable.

    Without `fetch` they are not fetched, and placeholders stand in their place.
    """
    settings = resolved.settings
    values = {name: setting.value for name, setting in settings.items()}
    origins = {name: setting.origin for name, setting in settings.items()}
    for name in (SECRETS - NEVER_IN_ARGV) & {
        name.removesuffix(FROM_COMMAND).removesuffix(FROM_ENVIRONMENT) for name in settings
    }:
        if name not in values and (text := secret(resolved, name) if fetch else _LEFT) is not None:
            values[name] = text
            source = settings.get(name + FROM_COMMAND) or settings[name + FROM_ENVIRONMENT]
            origins[name] = source.origin
    return Given(values, origins)


def secret(resolved: Resolved, name: str) -> str | None:
    """Return a secret's value: the setting itself, its command's output, or its variable's content."""
    if (value := resolved.get(name)) is not None:
        return value
    if (
        command := resolved.settings.get(name + FROM_COMMAND)
    ) is not None and name + FROM_COMMAND != _RENEWED:
        try:
            arguments = shlex.split(command.value)
        except ValueError:
            raise ConfigError(f"{command.name} ({command.origin}) has a quote that is not closed") from None
        return printed_by(arguments, f"{command.name} ({command.origin})", resolved.timeout_s())
    if (variable := resolved.settings.get(name + FROM_ENVIRONMENT)) is not None:
        # Not the invocation's own environment: no process gets a secret it does not need.
        held = os.environ.get(variable.value)
        if not held:
            raise ConfigError(
                f"{variable.name} ({variable.origin}): the variable {variable.value} is not set",
                "export it, or name another",
            )
        return held
    return None


def secret_or_file(settings: Resolved, name: str) -> str | None:
    """Return the secret `name` from its place; of two places from that of the stronger setting.

    Raise ConfigError for a file that cannot be read, is empty, or that others may read.
    """
    file = settings.settings.get(name + FILE_SUFFIX)
    others = (settings.settings.get(name + suffix) for suffix in ("", FROM_COMMAND, FROM_ENVIRONMENT))
    strongest = min((other.rank for other in others if other is not None), default=None)
    if file is None or (strongest is not None and strongest <= file.rank):
        return secret(settings, name)
    return read_secret(Path(file.value).expanduser())


def notify_secret(settings: Resolved, file: Path | None) -> str | None:
    """Return the secret that signs posts: from this file, else from the settings."""
    return secret_or_file(settings, NOTIFY_SECRET) if file is None else read_secret(file.expanduser())


def read_secret(path: Path) -> str:
    """Return the secret in a file, stripped of blanks; raise ConfigError as `secret_or_file`."""
    text = read_text(path, f"the secret in {path}").strip()
    refuse_if_exposed(path)
    if not text:
        raise ConfigError(f"the secret in {path} is empty")
    return text
