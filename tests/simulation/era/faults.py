"""Faults to plant in the machines, each breaks one rule: some seed must notice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from kgroup.zookeeper.consumer.machine import Lease
from kgroup.zookeeper.coordinator.core import Then
from kgroup.zookeeper.coordinator.election import Elector
from kgroup.zookeeper.coordinator.registries import Committer, Group, RegisteredConsumer, Registries, Writes
from kgroup.zookeeper.store.operations import Read, Write

FAR_MS = 10**12


@dataclass(frozen=True, slots=True)
class Fault:
    """A rule, by its number in the specification, and what takes the place of the code that keeps it."""

    rule: str
    owner: type
    attribute: str
    replacement: object


@contextmanager
def planted(fault: Fault | None) -> Iterator[None]:
    """Have the machines break the rule meanwhile."""
    if fault is None:
        yield
        return
    right = fault.owner.__dict__[fault.attribute]
    setattr(fault.owner, fault.attribute, fault.replacement)
    try:
        yield
    finally:
        setattr(fault.owner, fault.attribute, right)


def _never_ends(self: Lease, sent_ms: int) -> None:
    self.end_ms = FAR_MS


def _nobody(self: Group, *_: object) -> list[RegisteredConsumer]:
    return []


_multis = Writes.multis


def _unfenced(
    self: Writes, group: Group, puts: dict[str, bytes], deletes: Sequence[str]
) -> Iterator[list[Write]]:
    for multi in _multis(self, group, puts, deletes):
        yield multi[1:]


_ask = Registries.ask


def _watched_once(
    self: Registries, ops: Sequence[Read] | Sequence[Write], then: Then, *, watch: bool = False
) -> None:
    _ask(self, ops, then, watch=watch and self.interests.starting)


_changed = Committer.changed


def _cleared_first(self: Committer, group: Group) -> dict[str, bytes]:
    puts = _changed(self, group)
    group.changed.clear()
    return puts


FAULTS = {
    "coordinator-lease": Fault("3.3", Elector, "lease_end_ms", property(lambda self: FAR_MS)),
    "hand-over": Fault("5.6", Group, "blockers", _nobody),
    "consumer-lease": Fault("9.6", Lease, "registered", _never_ends),
    "epoch": Fault("3.2", Writes, "multis", _unfenced),
    "watch": Fault("6.3", Registries, "ask", _watched_once),
    "commit-bit": Fault("6.7", Committer, "changed", _cleared_first),
}
