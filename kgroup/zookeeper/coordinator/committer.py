"""Writes offsets to ZooKeeper, at intervals and when a rebalance needs them there (era 6.7, 7.6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kgroup.zookeeper.coordinator import paths
from kgroup.zookeeper.coordinator.registries import Group, Job

if TYPE_CHECKING:
    from kgroup.zookeeper.coordinator.reign import Reign


class Committer:
    """Writes the offsets that changed since they were written last; what fails stays to be written."""

    def __init__(self, reign: Reign) -> None:
        self._reign = reign

    def start(self) -> None:
        """Write at every interval from now on."""
        due = self._reign.core.now_ms + self._reign.core.config.commit_interval_ms
        self._reign.timers.arm(due, self._run)

    def flush(
        self, group: Group, then: Callable[[bool], None], more: Callable[[], dict[str, bytes]] = dict
    ) -> None:
        """Write the group's changed offsets, and `more` with them."""
        written: dict[str, bytes] = {}

        def puts() -> dict[str, bytes]:
            written.clear()
            written.update(self.changed(group))
            return {**written, **more()}

        def done(all_of_it: bool) -> None:
            if all_of_it:
                self.written(group, written)
            then(all_of_it)

        self._reign.writes.add(group, Job(puts, done))

    def changed(self, group: Group) -> dict[str, bytes]:
        """What is to be written of the group's offsets."""
        return {paths.offset(group.group_id, p): str(group.offsets[p]).encode() for p in group.changed}

    def written(self, group: Group, puts: dict[str, bytes]) -> None:
        """The bit is cleared for what was written, unless it has changed again since (era 6.7)."""
        for partition in list(group.changed):
            data = puts.get(paths.offset(group.group_id, partition))
            if data is not None and data == str(group.offsets[partition]).encode():
                del group.changed[partition]

    def _run(self) -> None:
        self.start()
        for group in self._reign.groups.values():
            if group.changed and not group.jobs:
                self.flush(group, lambda _: None)
