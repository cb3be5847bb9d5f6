"""The file of what happened in one group: `kgroup replay-log GROUP --scenario FILE`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from kgroup.domain import CLASSIC, CONSUMER, MemberStatus, TopicPartition
from kgroup.errors import ConfigError
from kgroup.history.fold.leave_causes import Way
from kgroup.scenario.forms import (
    DURATION,
    FLAG,
    NUMBER,
    OFFSETS,
    PARTITIONS,
    SHARES,
    SIZES,
    TEXT,
    TEXTS,
    Shares,
    given,
    list_of,
    one_of,
    read,
    read_fields,
    written,
)
from kgroup.text_files import LARGEST_GENERATED, load_yaml, read_text

VERSION = 1
UNKNOWN = "unknown"
RESTARTED = "restarted"
FOR_NOW = "left-for-now"
"""For a static member of a consumer group, which keeps its place."""
STATES = (MemberStatus.STABLE, MemberStatus.REVOKING, MemberStatus.WAITING)
PROTOCOLS = (CLASSIC, CONSUMER)
RETURNS = (RESTARTED, Way.FENCED.value)
"""Why an instance id got another member: its process restarted, or a second one fenced the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A member's identity on record; None is what no record says."""

    instance_id: str | None = given(TEXT, default=None)
    client_id: str | None = given(TEXT, default=None)
    host: str | None = given(TEXT, default=None)
    rack: str | None = given(TEXT, default=None)
    assignor: str | None = given(TEXT, default=None)
    session_timeout_ms: int | None = given(DURATION, default=None)
    rebalance_timeout_ms: int | None = given(DURATION, default=None)
    topics: tuple[str, ...] | None = given(TEXTS, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """An event, `at_ms` after the beginning; None: right after the step above it."""

    at_ms: int | None = given(DURATION, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class OfMember(Step):
    """Something that one member did, or that happened to it."""

    member: str = given(TEXT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Start(OfMember):
    """It joined; if `back`, with its former member id, because its process had lived on."""

    back: bool = given(FLAG, default=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop(OfMember):
    """It was gone, by its `cause`; if that is unknown, in a way that is `possible`, likeliest first."""

    cause: str = given(one_of((*Way, FOR_NOW, UNKNOWN)))
    possible: tuple[str, ...] = given(list_of(one_of(Way)), default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart(OfMember):
    """Its instance id got another member: a restarted process, or a second one that fenced the first.

    `generation` is the one that continued; None if this was part of a rebalance.
    """

    generation: int | None = given(NUMBER, default=None)
    cause: str = given(one_of((*RETURNS, UNKNOWN)))
    possible: tuple[str, ...] = given(list_of(one_of(RETURNS)), default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscribe(OfMember):
    """It subscribed to other topics from then on."""

    topics: tuple[str, ...] = given(TEXTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalance(Step):
    """A classic group began a generation; without members there is no leader."""

    generation: int = given(NUMBER)
    leader: str | None = given(TEXT, default=None)
    assignor: str | None = given(TEXT, default=None)
    assigned: Shares = given(SHARES, default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat(Step):
    """A heartbeat changed a consumer group: its epochs then, and where `member` was, if it moved.

    `target` has all members' target assignment, if it was computed. `owns` is what the member may read,
    `revoking` what it must give up.
    """

    epoch: int = given(NUMBER)
    assignment_epoch: int = given(NUMBER)
    target: Shares | None = given(SHARES, default=None)
    member: str | None = given(TEXT, default=None)
    member_epoch: int | None = given(NUMBER, default=None)
    state: str | None = given(one_of(STATES), default=None)
    owns: tuple[TopicPartition, ...] = given(PARTITIONS, default=())
    revoking: tuple[TopicPartition, ...] = given(PARTITIONS, default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Grow(Step):
    """Topics had more partitions from then on."""

    topics: Mapping[str, int] = given(SIZES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit(Step):
    """Offsets were committed, by an unknown member. They stand for `commits` commits; None: one of each."""

    offsets: Mapping[TopicPartition, int] = given(OFFSETS)
    commits: int | None = given(NUMBER, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOffsets(Step):
    """Committed offsets were removed: deleted, or expired."""

    partitions: tuple[TopicPartition, ...] = given(PARTITIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteGroup(Step):
    """The group was removed: deleted, or its last offset expired."""


VERBS: Mapping[str, type[Step]] = {
    "start": Start,
    "stop": Stop,
    "restart": Restart,
    "subscribe": Subscribe,
    "rebalance": Rebalance,
    "heartbeat": Heartbeat,
    "grow": Grow,
    "commit": Commit,
    "delete-offsets": DeleteOffsets,
    "delete-group": DeleteGroup,
}
WAIT = "wait"
_WRITE_ONE = "kgroup replay-log GROUP --scenario FILE writes one"
_VERB_OF = {made: verb for verb, made in VERBS.items()}
Members: TypeAlias = Mapping[str, Member]


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What precedes members and steps. `from_nothing` is false for a group that existed before."""

    scenario: int = given(NUMBER)
    name: str | None = given(TEXT, default=None)
    summary: str | None = given(TEXT, default=None)
    group: str = given(TEXT)
    protocol: str = given(one_of(PROTOCOLS), default=CLASSIC)
    began: str | None = given(TEXT, default=None)
    from_nothing: bool = given(FLAG, default=True)
    topics: Mapping[str, int] = given(SIZES, default_factory=dict)
    unknown: tuple[str, ...] = given(TEXTS, default=())


@dataclass(frozen=True, slots=True)
class Recorded:
    """What happened in a group, as far as its log shows; the steps in order."""

    head: Head
    members: Members = field(default_factory=dict)
    steps: tuple[Step, ...] = ()


def read_scenario(path: Path) -> Recorded:
    """Return the scenario in a file (docs/testing.md); ConfigError says what would be right."""
    try:
        text = read_text(path, f"scenario {path}", largest=LARGEST_GENERATED)
    except ConfigError as error:
        raise ConfigError(error.message, _WRITE_ONE) from None
    return scenario_in(text, f"scenario {path}")


def scenario_in(text: str, where: str) -> Recorded:
    """Return the scenario in a file's text; errors name it `where`."""
    document = load_yaml(text, where, hint=_WRITE_ONE)
    if not isinstance(document, Mapping) or "group" not in document:
        plan = isinstance(document, Mapping) and "steps" in document
        raise ConfigError(
            f"{where} names no group: it does not say what happened in one",
            "it is a plan, which kgroup simulate plays" if plan else "replay-log GROUP --scenario writes one",
        )
    version = document.get("scenario")
    if isinstance(version, int) and version > VERSION:
        hint = f"this kgroup reads {VERSION}: install the newer one, or have this one write the file again"
        raise ConfigError(f"{where} is of version {version}, which a newer kgroup wrote", hint)
    if version != VERSION:
        raise ConfigError(f"{where}: scenario {version!r} is not a version", f"write scenario: {VERSION}")
    rest = {key: value for key, value in document.items() if key not in ("members", "steps")}
    head = read_fields(Head, rest, where)
    by_name = document.get("members")
    if not isinstance(by_name, Mapping):
        raise ConfigError(f"{where} names no members", "members: {orders-0: {client_id: orders}}, or {}")
    members = {
        read(TEXT, name, f"{where}: members"): read_fields(Member, options or {}, f"{where}: member {name}")
        for name, options in by_name.items()
    }
    entries = document.get("steps")
    if not isinstance(entries, list) or not entries:
        raise ConfigError(f"{where} has no list of steps", "steps: [{start: {at: 0s, member: orders-0}}]")
    return Recorded(head, members, tuple(_steps(entries, members, where)))


def _steps(entries: list[object], members: Members, where: str) -> Iterator[Step]:
    now_ms = 0
    for number, entry in enumerate(entries, 1):
        here = f"{where}: step {number}"
        if not isinstance(entry, Mapping) or len(entry) != 1:
            raise ConfigError(f"{here}: {entry!r} is not a step", "a step is a verb with its options")
        ((verb, options),) = entry.items()
        if verb == WAIT:
            now_ms += read(DURATION, options, f"{here}: wait")
            continue
        if verb not in VERBS:
            raise ConfigError(f"{here}: {verb!r} is unknown", "one of " + ", ".join((*VERBS, WAIT)))
        step = read_fields(VERBS[verb], options or {}, f"{here}: {verb}")
        for name in _named(step):
            if name not in members:
                raise ConfigError(
                    f"{here}: {name!r} is not among the members", "they are " + ", ".join(members)
                )
        if isinstance(step, Stop | Restart) and step.cause == UNKNOWN and not step.possible:
            raise ConfigError(
                f"{here}: the cause is {UNKNOWN}, and nothing is possible", "possible: [left, session-ended]"
            )
        if step.at_ms is not None and step.at_ms < now_ms:
            raise ConfigError(
                f"{here}: {verb} is {now_ms - step.at_ms} ms before the step above it",
                "steps stand in the order of time",
            )
        now_ms = now_ms if step.at_ms is None else step.at_ms
        yield replace(step, at_ms=now_ms)


def _named(step: Step) -> Iterator[str]:
    if isinstance(step, OfMember):
        yield step.member
    if isinstance(step, Rebalance):
        yield from step.assigned
        if step.leader is not None:
            yield step.leader
    if isinstance(step, Heartbeat):
        yield from step.target or ()
        if step.member is not None:
            yield step.member


def text_of(recorded: Recorded) -> str:
    """Return the file that `read_scenario` reads: YAML, one line per member and step."""
    head = written(recorded.head)
    unknown = head.pop("unknown", [])
    lines = [
        "# What the log of a group says that happened in it; kgroup.testing plays it (kgroup docs testing).",
        *(f"{key}: {_flow(value)}" for key, value in head.items()),
        "members:" if recorded.members else "members: {}",
        *(f"  {_flow(name)}: {_flow(written(member))}" for name, member in recorded.members.items()),
        "unknown:" if unknown else "unknown: []",
        *(f"- {_flow(gap)}" for gap in unknown),  # type: ignore[attr-defined]
        "steps:",
        *(f"- {_VERB_OF[type(step)]}: {_flow(written(step))}" for step in recorded.steps),
    ]
    return "\n".join(lines) + "\n"


def _flow(value: object) -> str:
    """Return YAML on one line."""
    import yaml

    text: str = yaml.safe_dump(
        value, sort_keys=False, default_flow_style=True, width=1 << 30, allow_unicode=True
    )
    return text.removesuffix("\n").removesuffix("\n...")
