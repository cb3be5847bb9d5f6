"""Text and YAML that people write: read within bounds, with errors in words."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgroup.errors import ConfigError

if TYPE_CHECKING:
    import yaml

LARGEST = 1 << 20
"""Bytes of a file that people write by hand."""
LARGEST_GENERATED = 64 << 20
_MOST_KEYS = 10_000
"""Keys of one mapping: merge keys (<<) that refer to each other multiply them."""


def read_text(path: Path, what: str, *, largest: int = LARGEST, regular: bool = False) -> str:
    """Return the text of a file; raise ConfigError, which calls it `what`, if it cannot be read.

    No more than `largest` bytes are read. With `regular` a pipe or a device is refused.
    """
    try:
        return read_bytes(path, what, largest=largest, regular=regular).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(f"cannot read {what}: it is not UTF-8") from None


def read_bytes(path: Path, what: str, *, largest: int = LARGEST, regular: bool = False) -> bytes:
    """Return the content of a file, as `read_text`."""
    try:
        # Opening a pipe would wait for its writer.
        if regular and not stat.S_ISREG(path.stat().st_mode):
            raise ConfigError(f"cannot read {what}: it is not a regular file")
        with path.open("rb") as file:
            data = file.read(largest + 1)
    except OSError as error:
        raise ConfigError(f"cannot read {what}: {error.strerror}") from error
    if len(data) > largest:
        raise ConfigError(f"cannot read {what}: it has more than {largest >> 20} MiB")
    return data


def load_yaml(text: str, what: str, *, scalars: bool = True, hint: str | None = None) -> Any:
    """Return the document in a YAML text; raise ConfigError, which calls it `what`, with the line.

    Without `scalars` a number or a date is the text that was written.
    """
    import yaml

    try:
        return yaml.load(text, _loader(scalars))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}" if mark else ""
        said = getattr(error, "problem", None) or getattr(error, "reason", None)
        why = f": {' '.join(str(said).split())}" if said else ""
        raise ConfigError(f"{what}{line} is not valid YAML{why}", hint) from None
    except RecursionError:
        raise ConfigError(f"{what} is nested too deep", hint) from None
    except ValueError as error:
        raise ConfigError(f"{what} has a value that cannot be: {error}", "quotes keep it a text") from None


def _loader(scalars: bool) -> type[yaml.SafeLoader]:
    import yaml

    class Bounded(yaml.SafeLoader):
        def flatten_mapping(self, node: yaml.MappingNode) -> None:
            super().flatten_mapping(node)
            if len(node.value) > _MOST_KEYS:
                raise yaml.constructor.ConstructorError(
                    None, None, "merge keys make too many keys", node.start_mark
                )

    if not scalars:
        kept = ("tag:yaml.org,2002:null", "tag:yaml.org,2002:bool", "tag:yaml.org,2002:merge")
        Bounded.yaml_implicit_resolvers = {
            first: [pair for pair in pairs if pair[0] in kept]
            for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }
    return Bounded
