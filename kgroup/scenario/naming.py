"""Other names in a scenario, for a file that leaves the house: the same for the same, in the same order."""

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
    """The new names, by the old ones, of each sort of thing."""

    members: Mapping[str, str]
    topics: Mapping[str, str]
    instances: Mapping[str, str]
    clients: Mapping[str, str]
    hosts: Mapping[str, str]
    racks: Mapping[str, str]

    @classmethod
    def of(cls, recorded: Recorded) -> Self:
        """Return new names for all that a scenario names, numbered in the order of the old ones."""
        specs = recorded.members.values()
        subscribed = [step.topics for step in recorded.steps if isinstance(step, Subscribe)]
        topics = {topic for told in (*(spec.topics or () for spec in specs), *subscribed) for topic in told}
        return cls(
            _numbered("member", recorded.members),
            _numbered("topic", topics | recorded.head.topics.keys()),
            _numbered("instance", (spec.instance_id for spec in specs)),
            _numbered("client", (spec.client_id for spec in specs)),
            _numbered("host", (spec.host for spec in specs)),
            _numbered("rack", (spec.rack for spec in specs)),
        )

    def spec(self, told: Member) -> Member:
        """Return who a member is, in new names."""
        return replace(
            told,
            instance_id=self.instances.get(told.instance_id or ""),
            client_id=self.clients.get(told.client_id or ""),
            host=self.hosts.get(told.host or ""),
            rack=self.racks.get(told.rack or ""),
            topics=None if told.topics is None else self._topics(told.topics),
        )

    def step(self, told: Step) -> Step:
        """Return a step, in new names."""
        match told:
            case Subscribe():
                return replace(told, member=self.members[told.member], topics=self._topics(told.topics))
            case OfMember():
                return replace(told, member=self.members[told.member])
            case Commit():
                return replace(told, offsets={self._place(p): at for p, at in told.offsets.items()})
            case DeleteOffsets():
                return replace(told, partitions=self._places(told.partitions))
            case Rebalance():
                shares = {self.members[name]: self._places(share) for name, share in told.assigned.items()}
                leader = None if told.leader is None else self.members[told.leader]
                return replace(told, leader=leader, assigned=shares)
            case Heartbeat():
                target = None
                if told.target is not None:
                    target = {self.members[name]: self._places(share) for name, share in told.target.items()}
                return replace(
                    told,
                    member=None if told.member is None else self.members[told.member],
                    target=target,
                    owns=self._places(told.owns),
                    revoking=self._places(told.revoking),
                )
            case Grow():
                return replace(told, topics={self.topics[name]: size for name, size in told.topics.items()})
        return told

    def _places(self, told: Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:
        return tuple(sorted(map(self._place, told)))

    def _topics(self, told: Iterable[str]) -> tuple[str, ...]:
        return tuple(self.topics[topic] for topic in told)

    def _place(self, place: TopicPartition) -> TopicPartition:
        return TopicPartition(self.topics[place.topic], place.partition)


def renamed(recorded: Recorded) -> Recorded:
    """Return the same scenario with other names for group, topics, members, clients, hosts and racks."""
    names, head = Renaming.of(recorded), recorded.head
    return Recorded(
        replace(
            head,
            name="group-1",
            group="group-1",
            summary="what __consumer_offsets says of a group, with other names",
            topics={names.topics[topic]: size for topic, size in head.topics.items()},
        ),
        {names.members[name]: names.spec(spec) for name, spec in recorded.members.items()},
        tuple(map(names.step, recorded.steps)),
    )


def _numbered(sort: str, told: Iterable[str | None]) -> dict[str, str]:
    """Return new names in the order of the old ones: assignors go by it."""
    old = sorted({name for name in told if name is not None})
    return {name: f"{sort}-{number:0{len(str(len(old)))}}" for number, name in enumerate(old, 1)}
