"""Values that Kafka 0.8 to 1.1 writes into the nodes of a tree; DecodeError for anything else."""

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from kgroup.domain import OFFSETS_TOPIC
from kgroup.errors import DecodeError, Refused
from kgroup.patterns import compile_regex, matching_topics

STATIC, WHITE_LIST, BLACK_LIST = "static", "white_list", "black_list"
_ADDRESS = re.compile(r"(?P<protocol>\w+)://(?P<host>.*):(?P<port>[0-9]{1,5})")
_CONSUMER = re.compile(r"(?P<host>.+)-\d{13}-[0-9a-f]{1,8}")
_LONGEST = 1 << 63
_INT = 1 << 31


@dataclass(frozen=True, slots=True)
class Registration:
    """What a consumer subscribes to: topics by name, or those whose whole name matches a pattern or not.

    `topics` is None for a pattern; then it reads all names that match it, or with `excluded` all others.
    """

    topics: tuple[str, ...] | None
    pattern: str | None = None
    excluded: bool = False

    @property
    def regex(self) -> str | None:
        """The pattern as one that must match, in Java's syntax."""
        return f"(?!(?:{self.pattern})$).*" if self.excluded else self.pattern

    def wanted(self, existing: Collection[str]) -> frozenset[str] | None:
        """Return those of the existing topics that it reads; None for a pattern that only Java can parse."""
        if self.topics is not None:
            return frozenset(self.topics)
        # RE2, as everywhere: with Python's own, one consumer's pattern could block every command.
        try:
            matching = matching_topics(compile_regex(self.pattern or ""), existing)
        except Refused:
            return None
        return (frozenset(existing) - matching if self.excluded else matching) - {OFFSETS_TOPIC}


@dataclass(frozen=True, slots=True)
class Broker:
    """A live broker with the address of each of its listeners, by security protocol."""

    id: int
    listeners: Mapping[str, tuple[str, int]]


def registration_of(data: bytes) -> Registration:
    """Return what a node below `ids` holds."""
    document = _object(data)
    subscription, pattern = document.get("subscription"), document.get("pattern", STATIC)
    if not isinstance(subscription, dict) or pattern not in (STATIC, WHITE_LIST, BLACK_LIST):
        raise DecodeError(f"not a consumer's registration: {_quoted(data)}")
    if pattern == STATIC:
        return Registration(tuple(sorted(subscription)))
    return registration_of_pattern("|".join(subscription), pattern == WHITE_LIST)


def registration_of_pattern(text: str, included: bool) -> Registration:
    """Return a consumer of all topics that a pattern matches, or of all that it does not match."""
    # As the old consumer reads it: commas are alternatives, and quotes around it are not part of it.
    choice = text.strip().replace(",", "|").replace(" ", "").strip("\"'")
    return Registration(None, choice, excluded=not included)


def broker_of(number: str, data: bytes) -> Broker:
    """Return what a node below `/brokers/ids` holds, in its versions 1 to 5."""
    document = _object(data)
    protocols, endpoints = document.get("listener_security_protocol_map"), document.get("endpoints")
    addresses: dict[str, tuple[str, int]] = {}
    for endpoint in endpoints if isinstance(endpoints, list) else ():
        if match := _ADDRESS.fullmatch(str(endpoint)):
            name = match["protocol"]
            if isinstance(protocols, dict):
                name = str(protocols.get(name, name))
            addresses.setdefault(name, (match["host"].strip("[]"), int(match["port"])))
    host, port = document.get("host"), document.get("port")
    if not addresses and isinstance(host, str) and isinstance(port, int) and 0 < port < 1 << 16:
        addresses["PLAINTEXT"] = (host, port)
    broker_id = number_in(number.encode(), _INT)
    if broker_id is None or not addresses:
        raise DecodeError(f"not a broker's registration: {_quoted(data)}")
    return Broker(broker_id, addresses)


def partitions_of_topic(data: bytes) -> tuple[int, ...]:
    """Return the partition numbers that a node below `/brokers/topics` holds."""
    partitions = _object(data).get("partitions")
    if not isinstance(partitions, dict):
        raise DecodeError(f"it holds no partitions: {_quoted(data)}")
    return tuple(sorted(map(partition_number, partitions)))


def cluster_id_of(data: bytes) -> str | None:
    """Return the id in `/cluster/id`; None if there is none."""
    try:
        cluster_id = _object(data).get("id")
    except DecodeError:
        return None
    return cluster_id if isinstance(cluster_id, str) else None


def offset_of(data: bytes) -> int:
    """Return the committed offset in a node below `offsets`."""
    offset = number_in(data.strip(), _LONGEST)
    if offset is None:
        raise DecodeError(f"it is not an offset: {_quoted(data)}")
    return offset


def partition_number(name: str) -> int:
    """Return the number in a node's name; names of Kafka 0.7 such as 0-1 mean something else."""
    number = number_in(name.encode(), _INT)
    if number is None:
        raise DecodeError(f"{_quoted(name.encode())} is not a partition of Kafka 0.8 or later")
    return number


def number_in(digits: bytes, below: int) -> int | None:
    """Return the decimal number, None if it is none or too large: int() raises beyond 4,300 digits."""
    plain = digits.lstrip(b"0") or digits[:1]
    return int(plain) if plain.isdigit() and len(plain) < 20 and int(plain) < below else None


def consumer_of(thread: bytes) -> str:
    """Return the consumer that a thread in an owner's node belongs to."""
    try:
        consumer, _, number = thread.decode().rpartition("-")
    except UnicodeDecodeError:
        consumer = number = ""
    if not consumer or not number.isdecimal():
        raise DecodeError(f"it does not name a thread of a consumer: {_quoted(thread)}")
    return consumer


def host_of(group_id: str, consumer: str) -> str | None:
    """Return the host a consumer was started on, if its id is one that the old consumer generated."""
    match = _CONSUMER.fullmatch(consumer.removeprefix(f"{group_id}_"))
    return match["host"] if match else None


def _object(data: bytes) -> Mapping[str, object]:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise DecodeError(f"it is not a JSON object: {_quoted(data)}")
    return document


def _quoted(data: bytes) -> str:
    shown = data[:60].decode(errors="backslashreplace")
    return repr(shown) + (" …" if len(data) > 60 else "")
