"""Replacement of names in a scenario, for a file to be published: consistent, and in the same order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Self

from kgroup.domain import TopicPartition
from kgroup.scenario.recorded import (
    Commit,
    DeleteOffsets,
    Grow,
    Heartbeat,
    Member,
    OfMember,
    Rebalance,
    Recorded,
    Step,
    Subscribe,
)


@dataclass(frozen=True, slots=True)
class Renaming:
    """The new names, by the old ones, of each kind of thing."""

    members: Mapping[str, str]
    topics: Mapping[str, str]
    instances: Mapping[str, str]
    clients: Mapping[str, str]
    hosts: Mapping[str, str]
    racks: Mapping[str, str]

    @classmethod
    def of(cls, recorded: Recorded) -> Self:
        """Return new names for everything that a scenario names, numbered in the order of the old ones."""
        specs = recorded.members.values()
        subscribed = [step.topics for step in recorded.steps if isinstance(step, Subscribe)]
        topics = {topic for names in (*(spec.topics or () for spec in specs), *subscribed) for topic in names}
        return cls(
            _numbered("member", recorded.members),
            _numbered("topic", topics | recorded.head.topics.keys()),
            _numbered("instance", (spec.instance_id for spec in specs)),
            _numbered("client", (spec.client_id for spec in specs)),
            _numbered("host", (spec.host for spec in specs)),
            _numbered("rack", (spec.rack for spec in specs)),
        )

    def spec(self, member: Member) -> Member:
        """Return a member with new names."""
        return replace(
            member,
            instance_id=self.instances.get(member.instance_id or ""),
            client_id=self.clients.get(member.client_id or ""),
            host=self.hosts.get(member.host or ""),
            rack=self.racks.get(member.rack or ""),
            topics=None if member.topics is None else self._topics(member.topics),
        )

    def step(self, step: Step) -> Step:
        """Return a step with new names."""
        match step:
            case Subscribe():
                return replace(step, member=self.members[step.member], topics=self._topics(step.topics))
            case OfMember():
                return replace(step, member=self.members[step.member])
            case Commit():
                return replace(step, offsets={self._place(p): at for p, at in step.offsets.items()})
            case DeleteOffsets():
                return replace(step, partitions=self._places(step.partitions))
            case Rebalance():
                shares = {self.members[name]: self._places(share) for name, share in step.assigned.items()}
                leader = None if step.leader is None else self.members[step.leader]
                return replace(step, leader=leader, assigned=shares)
            case Heartbeat():
                target = None
                if step.target is not None:
                    target = {self.members[name]: self._places(share) for name, share in step.target.items()}
                return replace(
                    step,
                    member=None if step.member is None else self.members[step.member],
                    target=target,
                    owns=self._places(step.owns),
                    revoking=self._places(step.revoking),
                )
            case Grow():
                return replace(step, topics={self.topics[name]: size for name, size in step.topics.items()})
        return step

    def _places(self, places: Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:
        return tuple(sorted(map(self._place, places)))

    def _topics(self, topics: Iterable[str]) -> tuple[str, ...]:
        return tuple(self.topics[topic] for topic in topics)

    def _place(self, partition: TopicPartition) -> TopicPartition:
        return TopicPartition(self.topics[partition.topic], partition.partition)


def renamed(recorded: Recorded) -> Recorded:
    """Return the same scenario with other names for group, topics, members, clients, hosts and racks."""
    names, head = Renaming.of(recorded), recorded.head
    return Recorded(
        replace(
            head,
            name="group-1",
            group="group-1",
            summary="a group in __consumer_offsets, with other names",
            topics={names.topics[topic]: size for topic, size in head.topics.items()},
        ),
        {names.members[name]: names.spec(spec) for name, spec in recorded.members.items()},
        tuple(map(names.step, recorded.steps)),
    )


def _numbered(sort: str, names: Iterable[str | None]) -> dict[str, str]:
    """Return new names in the order of the old ones, because assignors depend on the order."""
    old = sorted({name for name in names if name is not None})
    return {name: f"{sort}-{number:0{len(str(len(old)))}}" for number, name in enumerate(old, 1)}
