"""What a fold has to keep to go on later, elsewhere, in another Python: plain data, a group at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from kgroup.domain import TopicPartition
from kgroup.history.fold.folding import Fold, Group
from kgroup.history.fold.topic_names import TopicNames
from kgroup.history.typed_json import Codec, Foreign


@dataclass(frozen=True, slots=True)
class Rest:
    """Everything of a fold but its groups; of those `open` and `spans` name the unfinished, in order.

    `last_offset` is the last one read, `seq` how many events were numbered.
    """

    log_partition: int
    last_offset: int
    seq: int
    names: TopicNames
    missing: int
    gap_end: int
    gap_timestamp_ms: int
    whole: bool
    block: int
    open: tuple[str, ...]
    spans: tuple[str, ...]


@cache
def rests() -> Codec[Rest]:
    """How the rest of a fold is stored."""
    return Codec(Rest)


@cache
def groups() -> Codec[Group]:
    """How a group is stored."""
    return Codec(Group, shared=(TopicPartition,))


def snapshot(fold: Fold, last_offset: int, seq: int) -> Iterator[tuple[str | None, bytes]]:
    """The rest of a fold, then each of its groups by name; the fold can go on afterwards."""
    rest = Rest(
        log_partition=fold.log_partition,
        last_offset=last_offset,
        seq=seq,
        names=fold.names,
        missing=fold.missing,
        gap_end=fold.gap_end,
        gap_timestamp_ms=fold.gap_timestamp_ms,
        whole=fold._whole,
        block=fold._block,
        open=tuple(fold._open),
        spans=tuple(fold._spans),
    )
    yield None, rests().encode(rest)
    for name, group in fold.groups.items():
        yield name, groups().encode(group)


def resumed(parts: Iterable[tuple[str | None, bytes]]) -> tuple[Fold, int, int]:
    """The fold of a snapshot, its last offset and number of events; Foreign for anything else."""
    rest: Rest | None = None
    found: dict[str, Group] = {}
    for name, data in parts:
        if name is None:
            if rest is not None:
                raise Foreign("two rows have no group")
            rest = rests().decode(data)
        else:
            found[name] = groups().decode(data)
            if found[name].state.group_id != name:
                raise Foreign(f"the row of {name} is about another group")
    if rest is None:
        raise Foreign("the row without a group is missing")
    fold = Fold(rest.log_partition)
    fold.names, fold.groups = rest.names, found
    fold.missing, fold.gap_end, fold.gap_timestamp_ms = rest.missing, rest.gap_end, rest.gap_timestamp_ms
    fold._whole, fold._block = rest.whole, rest.block
    try:
        fold._open = {name: found[name] for name in rest.open}
        fold._spans = {name: found[name] for name in rest.spans}
    except KeyError as error:
        raise Foreign(f"group {error} is missing") from None
    return fold, rest.last_offset, rest.seq
