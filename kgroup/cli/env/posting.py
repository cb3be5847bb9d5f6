"""`--notify`: where events are posted, with the secret that signs them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kgroup.cli.env.invocation import Env
from kgroup.cli.env.secrets import read_secret, secret_or_file
from kgroup.cli.env.setting_names import NOTIFY_SECRET
from kgroup.cli.env.webhook import Webhook
from kgroup.cli.exit_codes import ExitCode, Failure
from kgroup.errors import ConfigError, require_extra

NOT_DELIVERED = "NOT_DELIVERED"
CLOSING_S = 10.0
"""How long the events that still wait are posted when the command ends."""


@contextmanager
def posting(env: Env, url: str | None, secret_file: Path | None) -> "Iterator[Webhook | None]":
    """The webhook at `url`, its events posted or given up when the block ends; None without one.

    An interrupted block whose events did not all arrive ends with a Failure that names them.
    """
    if url is None:
        if secret_file is not None:
            raise ConfigError("--notify-secret-file signs posts, and there are none", "add --notify URL")
        yield None
        return

    require_extra("http", "--notify", "httpx")
    warn = "warning: "
    hook = Webhook(url, _secret(env, secret_file), undelivered=lambda lost: env.note(warn + lost.told))
    try:
        yield hook
    except KeyboardInterrupt:
        lost = hook.close(CLOSING_S)
        if not lost:
            raise
        told = "; ".join(each.told for each in lost)
        raise Failure(ExitCode.PARTIAL, NOT_DELIVERED, told) from None
    finally:
        hook.close(CLOSING_S)


def _secret(env: Env, file: Path | None) -> str | None:
    if file is not None:
        return read_secret(file.expanduser())
    return secret_or_file(env.settings(), NOTIFY_SECRET)
