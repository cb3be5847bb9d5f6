"""Changes of a cluster that belong together, written once and announced once."""

from dataclasses import dataclass, field

from kgroup.coordinator.outcome import Reply


@dataclass(slots=True)
class Changes:
    """Partitions created, topics deleted, configured and placed, settings, and the replies."""

    created: list[tuple[str, int]] = field(default_factory=list)  # partitions
    deleted: dict[str, int] = field(default_factory=dict)  # name → partitions
    settings: set[str] = field(default_factory=set)
    of_brokers: bool = False
    placed: set[str] = field(default_factory=set)
    of_groups: dict[str, dict[str, str]] = field(default_factory=dict)
    of_topics: bool = False
    replies: list[Reply] = field(default_factory=list)
