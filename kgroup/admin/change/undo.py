"""Undo a change of committed offsets from the journal's before-image, unless a commit came after."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kgroup.admin.change.journal import IN_DOUBT, Entry, Journal
from kgroup.admin.change.offset_plans import (
    CommittedOffset,
    Draft,
    OffsetsPlan,
    Purpose,
    item_from,
    look,
    make_plan,
)
from kgroup.admin.discovery import ClusterView
from kgroup.admin.models import SHARE, ChangeStatus
from kgroup.domain import TopicPartition, first_of
from kgroup.errors import ConfigError, KgroupError, SafetyRefused

UNDO = "undo"
DELETE = "delete"
CHANGES = frozenset({"reset-offsets", "offsets import", "offsets clone", "offsets delete", UNDO, DELETE})
"""The commands whose journal entries can be undone."""


@dataclass(frozen=True, slots=True)
class _PartitionChange:
    """One partition of an entry: the offset before, the offset after, and whether that is certain."""

    before: CommittedOffset | None
    after: CommittedOffset | None
    certain: bool


_Changes = dict[str, dict[TopicPartition, _PartitionChange]]


def plan_undo(
    cluster: ClusterView, journal: Journal, entry_id: str, group_ids: Iterable[str] = ()
) -> OffsetsPlan:
    """Return how to restore the state before a journal entry: offsets, leader epochs and metadata.

    LAST is the newest change of offsets on this cluster (of these groups) that is not an undo and not undone.
    `group_ids` limit the entry's groups. Commit times cannot be restored. Raise SafetyRefused when a
    committed offset is no longer what the change made of it: a commit came after.
    """
    wanted = frozenset(group_ids)
    entry = _find(journal, entry_id, cluster.metadata(()).cluster_id, wanted)
    changed = _changed(entry)
    if wanted:
        changed = {group: rows for group, rows in changed.items() if group in wanted}
    if not any(changed.values()):
        raise SafetyRefused(f"{entry.id} changed nothing that could be brought back")
    # A share group that is gone since becomes one again.
    if entry.command == DELETE:
        share = list(entry.plan.get("share", ()))
    else:
        share = [group["group_id"] for group in entry.plan["groups"] if group.get("type") == SHARE]
    now = look(cluster, changed, share)
    moved = []
    for group_id, rows in changed.items():
        group = now[group_id]
        if isinstance(group.error, KgroupError):
            raise group.error
        for partition, step in rows.items():
            current = group.committed.get(partition)
            untouched = not step.certain and current == step.before
            if current != step.after and not untouched:
                moved.append(f"{group_id} {partition} is {_text(current)}, was set to {_text(step.after)}")
    if moved:
        raise SafetyRefused(
            f"a commit came after {entry.id}: {first_of(moved, 3, '; ')}",
            "kgroup journal show prints the offsets before; reset-offsets --from-file sets them regardless",
        )
    drafts = {
        group: {p: Draft(step.before, "as it was") for p, step in rows.items()}
        for group, rows in changed.items()
    }
    return make_plan(Purpose(UNDO, f"undo {entry.id} ({entry.command})", undoes=entry.id), now, drafts)


def changed_groups(journal: Journal, entry_id: str) -> tuple[str, ...]:
    """Return the groups whose offsets an entry has changed, or may have: `plan_undo` restores those."""
    entry = journal.find(entry_id)
    return tuple(group for group, rows in _changed(entry).items() if rows) if entry else ()


def _find(journal: Journal, entry_id: str, cluster_id: str | None, groups: frozenset[str]) -> Entry:
    entries = journal.entries()
    undone = {
        str(e.plan["undoes"]): e.id
        for e in entries
        if e.plan.get("undoes") and any(r.get("result") == ChangeStatus.DONE for r in e.results or ())
    }
    if entry_id.upper() == "LAST":
        for entry in reversed(entries):
            fits = entry.command in CHANGES - {UNDO} and entry.cluster_id == cluster_id
            about = fits and entry.id not in undone and (not groups or groups & _groups_of(entry))
            if about and any(_changed(entry).values()):
                return entry
        raise SafetyRefused("the journal has no change of offsets to undo on this cluster", _SHOW)
    found = next((entry for entry in entries if entry.id == entry_id), None)
    if found is None:
        raise ConfigError(f"the journal has no entry {entry_id!r}", _SHOW)
    if found.command not in CHANGES:
        raise SafetyRefused(f"{entry_id} is a {found.command}: only changes of offsets can be undone")
    if found.cluster_id != cluster_id:
        raise SafetyRefused(f"{entry_id} is of cluster {found.cluster_id}, this one is {cluster_id}")
    if entry_id in undone:
        raise SafetyRefused(f"{entry_id} has already been undone, by {undone[entry_id]}")
    if groups and not groups & _groups_of(found):
        raise ConfigError(f"{entry_id} is not about {', '.join(sorted(groups))}")
    return found


_SHOW = "kgroup journal list shows the entries"


def _groups_of(entry: Entry) -> frozenset[str]:
    offsets = entry.before.get("offsets")
    return frozenset(offsets) if isinstance(offsets, Mapping) else frozenset()


def _changed(entry: Entry) -> _Changes:
    """Return what the entry changed; raise ConfigError for one of another version, or edited by hand."""
    changed: _Changes = {}
    try:
        if entry.command == DELETE:
            results = entry.results or ()
            deleted = {r["group_id"] for r in results if r["result"] == ChangeStatus.DELETED}
            doubtful = {r["group_id"] for r in results if r.get("error_code") in IN_DOUBT}
            if entry.results is None:
                doubtful = set(entry.before["offsets"])
            for group_id, rows in entry.before["offsets"].items():
                if isinstance(rows, list) and group_id in deleted | doubtful:
                    changed[group_id] = {
                        TopicPartition(topic, number): _PartitionChange(
                            CommittedOffset(offset, epoch, metadata), None, group_id in deleted
                        )
                        for topic, number, offset, epoch, metadata in rows
                    }
            return changed
        by_place = {(r["group_id"], r["topic"], r["partition"]): r for r in entry.results or ()}
        for item in map(item_from, entry.plan["items"]):
            result = by_place.get((item.group_id, item.topic, item.partition))
            done = result is not None and result["result"] == ChangeStatus.DONE
            doubt = item.planned and (result is None or result["error_code"] in IN_DOUBT)
            if done or doubt:
                changed.setdefault(item.group_id, {})[item.tp] = _PartitionChange(
                    item.before, item.after, done
                )
        return changed
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(f"{entry.id} is not an entry this version of kgroup can undo: {error}") from None


def _text(stored: CommittedOffset | None) -> str:
    return "absent" if stored is None else str(stored.offset)
