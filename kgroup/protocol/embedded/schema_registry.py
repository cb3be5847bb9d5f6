"""How instances of Confluent's Schema Registry elect a leader: JSON as metadata, and as every assignment.

The layout is that of SchemaRegistryIdentity and SchemaRegistryProtocol.Assignment, version 1; unknown
fields are ignored there and here. Eligibility and the leader are called "master" in the bytes.
"""

import json
from dataclasses import dataclass
from typing import TypeVar

from kgroup.domain import Document
from kgroup.errors import DecodeError
from kgroup.protocol.embedded.undecoded import ASSIGNMENT, METADATA, Undecoded, Unknown, attempt

PROTOCOL_TYPE = "sr"
NEWEST = 1
ERRORS = {0: None, 1: "DUPLICATE_URLS"}

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RegistryIdentity:
    """An instance as it reports itself; None is what it does not report. The eligible ones may lead."""

    host: str | None
    port: int | None
    scheme: str | None
    leader_eligible: bool | None

    @property
    def url(self) -> str | None:
        """Where the others forward writes to; None unless scheme, host and port are reported."""
        complete = None not in (self.scheme, self.host, self.port)
        return f"{self.scheme}://{self.host}:{self.port}" if complete else None


@dataclass(frozen=True, slots=True)
class RegistryElection:
    """The result: `error` is a name, None for none; `leader` a member id, None if no instance may lead."""

    error: str | None
    leader: str | None
    leader_identity: RegistryIdentity | None


@dataclass(frozen=True, slots=True)
class RegistryInstance:
    """One instance, and its election result; None if missing or not understood."""

    identity: RegistryIdentity | None
    election: RegistryElection | None


def instance(metadata: bytes, assignment: bytes) -> tuple[RegistryInstance, tuple[Undecoded, ...]]:
    """Return an instance by both of its parts, either maybe empty; and what was not understood."""
    identity = attempt(METADATA, metadata, _identity, version_of) if metadata else None
    election = attempt(ASSIGNMENT, assignment, _election, version_of) if assignment else None
    undecoded = tuple(part for part in (identity, election) if isinstance(part, Undecoded))
    return (
        RegistryInstance(
            None if isinstance(identity, Undecoded) else identity,
            None if isinstance(election, Undecoded) else election,
        ),
        undecoded,
    )


def version_of(data: bytes) -> int | None:
    """Return the version that either part claims; None without a JSON object that has one."""
    try:
        version = _object(data).get("version")
    except DecodeError:
        return None
    return version if type(version) is int else None


def _object(data: bytes) -> Document:
    try:
        document = json.loads(data)
        # A lone half of a surrogate pair is valid JSON, but cannot be shown.
        json.dumps(document, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"no JSON: {type(error).__name__}") from None
    if not isinstance(document, dict):
        raise DecodeError("no JSON object")
    return document


def _known(data: bytes) -> Document:
    document = _object(data)
    version = document.get("version", NEWEST)
    if type(version) is int and not 1 <= version <= NEWEST:
        raise Unknown(version, NEWEST, 1)
    return document


def _identity(data: bytes) -> RegistryIdentity:
    return _identity_of(_known(data))


def _identity_of(document: Document) -> RegistryIdentity:
    return RegistryIdentity(
        host=_field(document, "host", str),
        port=_field(document, "port", int),
        scheme=_field(document, "scheme", str),
        leader_eligible=_field(document, "master_eligibility", bool),
    )


def _election(data: bytes) -> RegistryElection:
    document = _known(data)
    code = _field(document, "error", int) or 0
    leader = _field(document, "master_identity", dict)
    return RegistryElection(
        error=ERRORS.get(code, f"error {code}"),
        leader=_field(document, "master", str),
        leader_identity=None if leader is None else _identity_of(leader),
    )


def _field(document: Document, name: str, kind: type[T]) -> T | None:
    value = document.get(name)
    if value is not None and type(value) is not kind:
        raise DecodeError(f"{name} is no {kind.__name__}")
    return value
