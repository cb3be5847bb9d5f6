"""Bytes that could not be read, and what is known of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, TypeVar

from kgroup.domain import count_of
from kgroup.errors import DecodeError

METADATA, ASSIGNMENT = "metadata", "assignment"
"""What a member joined with, and what its leader assigned."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Undecoded:
    """A part of a member's bytes that was not understood: its size, its version if known, and why."""

    part: Annotated[str, ("metadata", "assignment")]
    size: int
    version: int | None
    reason: str

    @property
    def text(self) -> str:
        """One clause for people: `assignment undecoded, 416 bytes, version 12: newer than 11`."""
        version = "" if self.version is None else f", version {self.version}"
        return f"{self.part} undecoded, {count_of(self.size, 'byte')}{version}: {self.reason}"


class Unknown(DecodeError):
    """Bytes of a version that is not known here; `version` is the one they claim."""

    def __init__(self, version: int, newest: int, oldest: int = 0) -> None:
        super().__init__(f"newer than {newest}" if version > newest else f"older than {oldest}")
        self.version = version


def attempt(
    part: str, data: bytes, decode: Callable[[bytes], T], version: Callable[[bytes], int | None]
) -> T | Undecoded:
    """Return what `decode` makes of `data`, or, if it raises DecodeError, the reason and the version."""
    try:
        return decode(data)
    except Unknown as error:
        return Undecoded(part, len(data), error.version, error.message)
    except DecodeError as error:
        return Undecoded(part, len(data), version(data), error.message)
