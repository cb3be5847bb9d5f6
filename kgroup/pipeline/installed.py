"""Whether the libraries of an extra are there."""

from importlib.util import find_spec

from kgroup.errors import ConfigError


def check_installed(what: str, hint: str, *libraries: str) -> None:
    """ConfigError with a hint what to install, if one of the libraries is missing."""
    missing = [name for name in libraries if find_spec(name) is None]
    if missing:
        raise ConfigError(f"{what} needs {', '.join(missing)}", hint)
