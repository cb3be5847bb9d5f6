"""A rule: which requests, what is done to them, and how often; the fields of kfake, and more."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from uuid import UUID

from kgroup.broker.control.faults.sites import (
    SELECTORS,
    Site,
    selectors_of,
)
from kgroup.durations import parse_duration
from kgroup.errors import ConfigError, ErrorCode
from kgroup.protocol import registry
from kgroup.protocol.anatomy import Entry
from kgroup.protocol.registry import ApiKey

UNLIMITED = -1
FIRST_NAMES = {"NOT_LEADER_FOR_PARTITION": ErrorCode.NOT_LEADER_OR_FOLLOWER}
"""kfake's names of errors that were renamed in Kafka 2.6."""
_KEYS = {registry.name_of(key).lower(): key for key in registry.KAFKA_APIS}
_NUMBERED = {str(int(key)): key for key in registry.KAFKA_APIS}
_ERRORS = {**ErrorCode.__members__, **FIRST_NAMES, **{str(int(code)): code for code in ErrorCode}}
_ACTS = ("error", "observe", "drop", "cut_after", "append_fails", "stale")
_TEXT = "a text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What a request must match in all that is set, and what happens to it then.

    As in kfake: a selector that a request does not carry never matches, an unset one matches all; `count`
    is a budget of requests: unset is one, -1 is until removed. Unlike there, a rule names its effect, and
    `count` is not 0. kgroup's own are `client`, `delay`,
    `drop`, `cut_after`, `append_fails` and `stale`.
    """

    keys: tuple[str, ...] = ()
    """Names of requests, or their numbers."""
    nodes: tuple[int, ...] = ()
    """Brokers that the request arrived at."""
    client: str = ""
    """The client id of the sender."""
    topic: str = ""
    topic_id: str = ""
    partitions: tuple[int, ...] = ()
    group: str = ""
    txn_id: str = ""
    resource: str = ""
    """A config resource, or a member in a LeaveGroup."""
    top_level: bool = False
    """Fail the answer's own error code, not that of its entries."""
    error: str = ""
    """Kafka's name of an error, or its number."""
    count: int = 1
    observe: bool = False
    """Count requests that match, and serve them."""
    delay: str = ""
    """Real time for which a request waits before anything else is done with it, as "500ms"."""
    drop: bool = False
    """Do the work and send no answer: the connection stays open and silent."""
    cut_after: int | None = None
    """Do the work and close the connection after so many bytes of the answer; 0 sends none of it."""
    append_fails: bool = False
    """Fail the next `count` appends to the log of a topic, or to the one that has the group."""
    stale: bool = False
    """Answer Metadata and FindCoordinator as of when the rule was set."""

    @classmethod
    def of(cls, given: Mapping[str, object]) -> Rule:
        """Return the rule that a mapping of its fields describes; ConfigError gives the valid values."""
        known = {f.name: f for f in fields(cls)}
        values: dict[str, Entry] = {}
        for name, value in given.items():
            if name not in known:
                near = get_close_matches(name, known, 1)
                hint = f"did you mean {near[0]}?" if near else f"a rule has {', '.join(known)}"
                raise ConfigError(f"a rule has no field {name!r}", hint)
            values[name] = _READERS[name](name, value)
        rule = cls(**values)
        rule._check()
        return rule

    @property
    def code(self) -> ErrorCode | None:
        """The error of the answer; None where the rule does something else."""
        return error_of(self.error) if self.error else None

    @property
    def delay_s(self) -> float:
        """The delay in seconds."""
        return parse_duration(self.delay) if self.delay else 0.0

    @property
    def api_keys(self) -> frozenset[int]:
        """The requests it is about, by number; none of them for all."""
        return frozenset(map(key_of, self.keys))

    def matches(self, site: Site) -> bool:
        """Return whether the rule selects this part of a request."""
        return (
            self.topic in ("", site.topic)
            and (not self.topic_id or topic_id_of(self.topic_id) == site.topic_id)
            and (not self.partitions or site.partition in self.partitions)
            and self.group in ("", site.group)
            and self.txn_id in ("", site.txn_id)
            and self.resource in ("", site.resource)
        )

    def shown(self) -> dict[str, object]:
        """Return what is set, as JSON has it, with the defaults that act."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        default = {f.name: f.default for f in fields(self)}
        kept = {name: value for name, value in values.items() if value != default[name]}
        return {**kept, "count": self.count}

    @property
    def _acts(self) -> list[str]:
        acts = {name: getattr(self, name) for name in _ACTS}
        return [name for name, given in acts.items() if given or (name == "cut_after" and given is not None)]

    def _check(self) -> None:
        if len(self._acts) > 1:
            both = " and ".join(self._acts[:2])
            raise ConfigError(f"a rule cannot have {both} together", "set two rules")
        if self.observe and self.delay:
            raise ConfigError("a rule that observes delays nothing", "set two rules")
        named = [name for name in SELECTORS if getattr(self, name)]
        entries = [name for name in named if name not in ("group", "txn_id")]
        if self.top_level and entries:
            raise ConfigError(
                f"top_level and {entries[0]} exclude each other", "it selects by group and txn_id"
            )
        if self.partitions and not (self.topic or self.topic_id):
            raise ConfigError("partitions are those of a topic", "name the topic, too")
        if self.append_fails:
            self._check_appends(named)
        for name in self.keys:
            key = key_of(name)
            if self.stale and key not in (ApiKey.METADATA, ApiKey.FIND_COORDINATOR):
                raise ConfigError(
                    f"{registry.name_of(key)} has no stale answer", "Metadata and FindCoordinator have"
                )
            for missing in set(named) - selectors_of(key):
                can = ", ".join(sorted(selectors_of(key))) or "nothing"
                why = f"{registry.name_of(key)} names no {missing}: the rule would never act"
                raise ConfigError(why, f"it can be selected by {can}, keys, nodes and client")
        if not self._acts and not self.delay:
            raise ConfigError("a rule has no effect", f"give one of {', '.join(_ACTS)}, delay")

    def _check_appends(self, named: Collection[str]) -> None:
        others = [
            n
            for n in ("keys", "nodes", "client", "top_level", "delay", "txn_id", "resource")
            if getattr(self, n)
        ]
        if others:
            raise ConfigError(
                f"append_fails is about a log, not about {others[0]}", "name a topic or a group"
            )
        if not {"topic", "group"} & set(named) or {"topic", "group"} <= set(named) or self.topic_id:
            raise ConfigError("append_fails needs a topic or a group", "as topic='orders', partitions=[0]")


def key_of(text: str) -> int:
    """Return the number of the request that a name, in any case, or a number stands for; ConfigError."""
    key = _KEYS.get(text.lower(), _NUMBERED.get(text))
    if key is None:
        near = get_close_matches(text.lower(), _KEYS, 3)
        names = ", ".join(registry.name_of(_KEYS[match]) for match in near)
        raise ConfigError(
            f"{text!r} is not a Kafka request", f"did you mean {names}?" if names else "as 'Produce'"
        )
    return key


def error_of(text: str) -> ErrorCode:
    """Return the error that a name, in any case, or a number stands for; ConfigError."""
    name = text.upper()
    if name in _ERRORS:
        return _ERRORS[name]
    near = get_close_matches(name, ErrorCode.__members__, 3)
    hint = f"did you mean {', '.join(near)}?" if near else "as 'NOT_COORDINATOR', or its number"
    raise ConfigError(f"{text!r} is not a Kafka error", hint)


def topic_id_of(text: str) -> bytes:
    """Return the bytes of a topic's id, written as a UUID or as Kafka prints it; ConfigError."""
    try:
        if len(text) == 22:
            return base64.b64decode(f"{text}==", altchars=b"-_", validate=True)
        return UUID(text).bytes
    except (ValueError, binascii.Error):
        hint = "as 'b8tRS7h4TJ2Vt43Dp85v2A', or with hexadecimal digits"
        raise ConfigError(f"{text!r} is no topic id", hint) from None


def _text(name: str, value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise _wrong(name, value, _TEXT)
    return str(value)


def _error(name: str, value: object) -> str:
    text = _text(name, value)
    if text and error_of(text) is ErrorCode.NONE:
        raise ConfigError("NONE is no error", "observe=True counts requests that are served")
    return text


def _text_that(check: Callable[[str], object]) -> Callable[[str, object], str]:
    """Return a reader of texts that pass a check; an empty one needs none."""

    def read(name: str, value: object) -> str:
        text = _text(name, value)
        if text:
            check(text)
        return text

    return read


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise _wrong(name, value, "true or false")
    return value


def _number(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong(name, value, "a number")
    return value


def _count(name: str, value: object) -> int:
    number = _number(name, value)
    if not number:
        raise ConfigError(f"{name} is 0: the rule would never act", "it is 1 by default, -1 without limit")
    return max(number, UNLIMITED)


def _bytes(name: str, value: object) -> int | None:
    if value is None:
        return None
    number = _number(name, value)
    if number < 0:
        raise ConfigError(f"{name} is {number}", "it is a number of bytes, from 0 on")
    return number


def _keys(name: str, value: object) -> tuple[str, ...]:
    keys = tuple(_text(name, item) for item in _list(name, value))
    for key in keys:
        key_of(key)
    return keys


def _numbers(name: str, value: object) -> tuple[int, ...]:
    numbers = tuple(_number(name, item) for item in _list(name, value))
    for number in numbers:
        if number < 0:
            raise ConfigError(f"{name} has {number}", "leave it out for all")
    return numbers


def _list(name: str, value: object) -> Collection[object]:
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Collection):
        raise _wrong(name, value, f"a list, as [{value!r}]")
    return value


def _wrong(name: str, value: object, right: str) -> ConfigError:
    return ConfigError(f"{name} is {value!r}", f"it is {right}")


_READERS: dict[str, Callable[[str, object], Entry]] = {
    **dict.fromkeys(("client", "topic", "group", "txn_id", "resource"), _text),
    **dict.fromkeys(("top_level", "observe", "drop", "append_fails", "stale"), _flag),
    **dict.fromkeys(("nodes", "partitions"), _numbers),
    "keys": _keys,
    "topic_id": _text_that(topic_id_of),
    "error": _error,
    "count": _count,
    "delay": _text_that(parse_duration),
    "cut_after": _bytes,
}
