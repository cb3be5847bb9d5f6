"""Undo a change of committed offsets from the journal's before-image, unless a commit came after."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from kgroup.admin.change.offset_plans import (
    CommittedOffset,
    Draft,
    OffsetsPlan,
    Purpose,
    item_from,
    look_before,
    make_plan,
)
from kgroup.admin.discovery import ClusterView
from kgroup.admin.journal import IN_DOUBT, LAST, Entry, Journal
from kgroup.admin.models import SHARE, ChangeStatus
from kgroup.domain import TopicPartition, first_of
from kgroup.durations import utc
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


def plan_undo(cluster: ClusterView, entry_id: str, group_ids: Iterable[str] = ()) -> OffsetsPlan:
    """Return how to restore the state before a journal entry: offsets, leader epochs and metadata.

    LAST is the newest change in the journal, whatever it changed. `group_ids` limit the entry's groups and
    must be among them. Commit times cannot be restored. Raise SafetyRefused for an entry without an undo, and
    when a committed offset is no longer what the change made of it: a commit came after.
    """
    entry = _find(cluster.journal, entry_id, cluster.metadata(()).cluster_id)
    changed = _left(cluster.journal, entry, _named(entry, entry_id), frozenset(group_ids))
    # A share group that is gone since becomes one again.
    if entry.command == DELETE:
        share = list(entry.plan.get("share", ()))
    else:
        share = [group["group_id"] for group in entry.plan["groups"] if group.get("type") == SHARE]
    now = look_before(cluster, changed, share)
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
    headed = {group: "the start offset as it was" if group in share else "as it was" for group in changed}
    drafts = {
        group: {p: Draft(step.before, headed[group]) for p, step in rows.items()}
        for group, rows in changed.items()
    }
    plan = make_plan(Purpose(UNDO, f"undo {told(entry)}", undoes=entry.id), now, drafts)
    forgotten = _done_beyond(entry)
    groups = (
        replace(g, caution=" ".join(filter(None, (_again(entry, g.group_id, forgotten), g.caution))))
        if g.group_id in share
        else g
        for g in plan.groups
    )
    return replace(plan, groups=tuple(groups))


def _left(journal: Journal, entry: Entry, name: str, groups: frozenset[str]) -> _Changes:
    """Return what an entry changed of these groups, or of all of its groups, and no undo has restored."""
    changed = _changed(entry)
    strange = groups - groups_of(entry)
    if strange:
        raise SafetyRefused(f"{name} is not about {', '.join(sorted(strange))}", _SHOW)
    if groups:
        changed = {group: rows for group, rows in changed.items() if group in groups}
    if not any(changed.values()):
        raise SafetyRefused(f"{name} changed no committed offset that could be brought back", _SHOW)
    undone = _undone(journal, entry)
    left = {
        group: {partition: step for partition, step in rows.items() if (group, *partition) not in undone}
        for group, rows in changed.items()
    }
    if not any(left.values()):
        raise SafetyRefused(f"{name} has already been undone, by {', '.join(sorted(set(undone.values())))}")
    return left


def _done_beyond(entry: Entry) -> Mapping[str, int | None]:
    """Return at most how many records beyond the start offsets were done when the change forgot them."""
    if entry.command == DELETE:
        done_beyond = entry.plan.get("done_beyond")
        return done_beyond if isinstance(done_beyond, Mapping) else {}
    return {group["group_id"]: group.get("done_beyond") for group in entry.plan["groups"]}


def _again(entry: Entry, group_id: str, forgotten: Mapping[str, int | None]) -> str:
    """Return what becomes of the records that were done beyond the start offsets of a share group."""
    count = forgotten.get(group_id)
    what = "how many is not known" if count is None else f"up to {count}"
    if count == 0:
        return f"{group_id} is a share group: {entry.id} forgot its delivery counts, which begin at 0."
    return (
        f"{group_id} is a share group: {entry.id} forgot which records beyond its start offsets were "
        f"acknowledged or given up, and those are delivered again ({what})."
    )


def changed_groups(journal: Journal, entry_id: str) -> tuple[str, ...]:
    """Return the groups whose offsets an entry has changed, or may have: `plan_undo` restores those."""
    entry = journal.find(entry_id)
    return tuple(group for group, rows in _changed(entry).items() if rows) if entry else ()


def groups_of(entry: Entry) -> frozenset[str]:
    """Return the groups whose offsets an entry keeps."""
    offsets = entry.before.get("offsets")
    return frozenset(offsets) if isinstance(offsets, Mapping) else frozenset()


def told(entry: Entry) -> str:
    """Return an entry's id, and whose change it was: command, user and time."""
    who = entry.plan.get("actor") or "an unknown user"
    return f"{entry.id} ({entry.command} by {who} at {utc(entry.time_ms)})"


def _find(journal: Journal, entry_id: str, cluster_id: str | None) -> Entry:
    last = entry_id.upper() == LAST
    entry = journal.find(entry_id)
    if entry is None and last:
        raise SafetyRefused("the journal has no change to undo")
    if entry is None:
        raise ConfigError(f"the journal has no entry {entry_id!r}", _SHOW)
    name = _named(entry, entry_id)
    if entry.command not in CHANGES:
        raise SafetyRefused(f"{name} cannot be undone here: only changes of offsets can", _SHOW)
    if entry.cluster_id != cluster_id:
        raise SafetyRefused(f"{name} is of cluster {entry.cluster_id}, this one is {cluster_id}", _SHOW)
    if last and entry.command == UNDO:
        raise SafetyRefused(f"{name} is the undo of {entry.plan.get('undoes')}", _SHOW)
    return entry


def _named(entry: Entry, entry_id: str) -> str:
    return f"the newest change, {told(entry)}," if entry_id.upper() == LAST else entry.id


def _undone(journal: Journal, entry: Entry) -> dict[tuple[str, str, int], str]:
    """Return the partitions of an entry that are as they were again, each with the undo that did it."""
    return {
        (r["group_id"], r["topic"], r["partition"]): undo.id
        for undo in journal.entries()
        if undo.plan.get("undoes") == entry.id
        for r in undo.results or ()
        if r.get("result") == ChangeStatus.DONE
    }


_SHOW = "kgroup journal list shows the entries; --undo ID undoes the one that is named"


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
