"""What a streams group runs and where, as the admin layer shows it (KIP-1071)."""

from __future__ import annotations

from typing import Annotated

from kgroup.domain import value


@value
class ClientTag:
    """One tag that a Streams client gives itself."""

    key: str
    value: str


@value
class StreamsProcess:
    """Where a member of a streams group runs, and what: several threads may share a process.

    `endpoint` is `host:port` for interactive queries, None where the application names none.
    """

    process_id: str
    topology_epoch: int
    endpoint: Annotated[str | None, "host:port, null without one"]
    client_tags: tuple[ClientTag, ...]


@value
class SubtopologyTopics:
    """The topics of a part of a topology, by name: those it reads, and those that keep its state."""

    subtopology_id: str
    source_topics: tuple[str, ...]
    repartition_topics: tuple[str, ...]
    changelog_topics: tuple[str, ...]

    @property
    def by_role(self) -> tuple[tuple[str, str], ...]:
        """What each topic is there for, and its name."""
        roles = ("source", self.source_topics), ("repartition", self.repartition_topics)
        return tuple(
            (role, name) for role, names in (*roles, ("changelog", self.changelog_topics)) for name in names
        )


@value
class StreamsTopology:
    """What a streams group runs."""

    epoch: int
    subtopologies: tuple[SubtopologyTopics, ...]
