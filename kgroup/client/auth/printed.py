"""A secret that a command prints: run without a shell, with a timeout, never shown."""

import subprocess
from collections.abc import Sequence

from kgroup.errors import ConfigError


def printed_by(arguments: Sequence[str], setting: str, within_s: float) -> str:
    """Return what the command prints, without its last line break; ConfigError with the reason of a failure.

    It may ask at the terminal: standard error and input are ours.
    """
    if not arguments:
        raise ConfigError(f"{setting} names no command")
    try:
        done = subprocess.run(arguments, stdout=subprocess.PIPE, timeout=within_s, check=False)
    except subprocess.TimeoutExpired:
        raise ConfigError(
            f"{setting}: its command did not end in {within_s:.0f} s", "a longer --timeout may help"
        ) from None
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) and error.strerror else "it cannot be started"
        raise ConfigError(f"{setting}: its command cannot be run: {said.lower()}") from None
    if done.returncode != 0:
        raise ConfigError(f"{setting}: its command ended with {done.returncode}", "run it by hand to see why")
    try:
        text = done.stdout.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise ConfigError(f"{setting}: what its command prints is not UTF-8") from None
    if not text:
        raise ConfigError(
            f"{setting}: its command printed nothing", "it must print the secret and nothing else"
        )
    return text
