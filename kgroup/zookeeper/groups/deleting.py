"""Take groups out of a tree: nothing of a group that is read, and what is gone is gone as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from kgroup.admin.models import ChangeStatus, GroupResult
from kgroup.admin.refusals import code_name
from kgroup.errors import BrokerRefused, ErrorCode, KgroupError
from kgroup.zookeeper.groups.describing import EMPTY, UNKNOWN, Seen
from kgroup.zookeeper.groups.nodes import CONSUMERS, IDS, OFFSETS, OWNERS, Ask
from kgroup.zookeeper.store.names import path_of
from kgroup.zookeeper.store.operations import Children, Delete, Failure, Result

Transact = Callable[..., tuple[Result, ...]]
MOST = 4000
"""Deletions in one multi: ZooKeeper takes no request over 1 MiB, and a path has 249 bytes a name at most."""
MOST_BYTES = 512 * 1024


def refusal_of(seen: Seen) -> KgroupError | None:
    """Why a group may not be moved or deleted now; None when nobody reads with it."""
    name, nodes = seen.nodes.group_id, seen.nodes
    if seen.state == EMPTY:
        return None
    if nodes.told is not None and not nodes.registered:
        message = f"{name} is {seen.state} at its coordinator: consumers that read it before may go on"
        hint = "ask again in a moment: no longer than their session timeout"
        return BrokerRefused(ErrorCode.NON_EMPTY_GROUP, message, hint=hint)
    if seen.state != UNKNOWN:
        count = len(nodes.registered)
        consumers = "1 live consumer" if count == 1 else f"{count} live consumers"
        where = "in ZooKeeper" if nodes.told is None else "with its coordinator"
        message = f"{name} has {consumers} registered {where}: they go on committing"
        hint = "stop its consumers first; their registrations end with their sessions"
        return BrokerRefused(ErrorCode.NON_EMPTY_GROUP, message, hint=hint)
    if nodes.owners:
        lasting = any(owner.lasting for owner in nodes.owners.values())
        how = "by nodes that outlive their consumers" if lasting else "by consumers that are not registered"
        message = f"{name}: whether it is read is not known: {len(nodes.owners)} partitions are owned {how}"
        hint = "ask again in a moment"
        if lasting and not nodes.errors:
            hint = "only a coordinator knows: ask again while kgroup serve --legacy runs on this tree"
        return BrokerRefused(ErrorCode.NON_EMPTY_GROUP, message, hint=hint)
    first = nodes.errors[0]
    code = ErrorCode.__members__.get(first.code, ErrorCode.NON_EMPTY_GROUP)
    return BrokerRefused(code, f"{name}: whether it is read is not known: {first.message}", hint=first.hint)


def may_be_left_over(seen: Seen) -> bool:
    """Return whether owners are the one sign of readers: no reason not to read the offsets."""
    return seen.state == UNKNOWN and bool(seen.nodes.owners) and seen.nodes.told is None


def planned(group_id: str, seen: Seen | KgroupError) -> GroupResult:
    """What deleting a group would do."""
    error = seen if isinstance(seen, KgroupError) else refusal_of(seen)
    if error is None:
        return GroupResult(
            group_id, ChangeStatus.PLANNED, None, "deleted from ZooKeeper with all its offsets"
        )
    missing = isinstance(error, BrokerRefused) and error.code == ErrorCode.GROUP_ID_NOT_FOUND
    effect = error.message.removeprefix(f"{group_id}: ").removeprefix(f"{group_id} ")
    return GroupResult(
        group_id, ChangeStatus.NOT_FOUND if missing else ChangeStatus.FAILED, code_name(error), effect
    )


def delete(ask: Ask, transact: Transact, group_id: str) -> GroupResult:
    """Delete a group's nodes, the registrations' parent first: a consumer that came meanwhile keeps it all.

    In one multi where it fits; else what is left says so in the result.
    """
    paths = list(_bottom_up(ask, path_of(CONSUMERS, group_id)))
    registered = path_of(CONSUMERS, group_id, IDS) + "/"
    if any(path is not None and path.startswith(registered) for path in paths):
        return _failed(
            group_id, "NON_EMPTY_GROUP", "a consumer has registered meanwhile: nothing was deleted"
        )
    if None in paths:
        return _failed(
            group_id, "GROUP_AUTHORIZATION_FAILED", "not authorised to read its nodes: none deleted"
        )
    order = {path_of(CONSUMERS, group_id, part): rank for rank, part in enumerate((IDS, OWNERS, OFFSETS))}
    known = [path for path in paths if path is not None]
    known.sort(key=lambda path: next((r for p, r in order.items() if (path + "/").startswith(p + "/")), 9))
    done = 0
    for batch in _batches(known):
        answers = transact(*(Delete(path) for path in batch))
        wrong = next(((p, a) for p, a in zip(batch, answers, strict=True) if _is_cause(a)), None)
        if wrong is not None:
            return _not_deleted(group_id, wrong, done, len(known))
        done += len(batch)
    return GroupResult(group_id, ChangeStatus.DELETED, None, "deleted from ZooKeeper with all its offsets")


def _bottom_up(ask: Ask, path: str) -> Iterator[str | None]:
    """A node and all below it, children first, level by level asked; None for one that may not be read."""
    levels: list[list[str]] = [[path]]
    hidden = False
    while levels[-1]:
        below = []
        for parent, names in zip(levels[-1], ask(*map(Children, levels[-1])), strict=True):
            if isinstance(names, tuple):
                below += [f"{parent}/{name}" for name in names]
            else:
                hidden = hidden or names is not Failure.NO_NODE
        levels.append(below)
    if hidden:
        yield None
    for level in reversed(levels):
        yield from level


def _batches(paths: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for path in paths:
        # Header and version of an operation beside its path.
        size += len(path.encode()) + 32
        if batch and (len(batch) >= MOST or size > MOST_BYTES):
            yield batch
            batch, size = [], len(path.encode()) + 32
        batch.append(path)
    if batch:
        yield batch


def _is_cause(answer: Result) -> bool:
    return isinstance(answer, Failure) and answer is not Failure.ROLLED_BACK


def _not_deleted(group_id: str, wrong: tuple[str, Result], done: int, of: int) -> GroupResult:
    path, failure = wrong
    rest = f"; {done} of {of} nodes were deleted before" if done else "; nothing of it was deleted"
    if failure is Failure.NOT_EMPTY or failure is Failure.NO_NODE:
        return _failed(group_id, "NON_EMPTY_GROUP", f"it changed meanwhile ({path}){rest}: ask again")
    if failure is Failure.NO_AUTH:
        return _failed(group_id, "GROUP_AUTHORIZATION_FAILED", f"not authorised to delete {path}{rest}")
    message = (
        f"whether it was deleted is not known: {failure.value if isinstance(failure, Failure) else failure}"
    )
    return _failed(group_id, "UNREACHABLE", message)


def _failed(group_id: str, code: str, effect: str) -> GroupResult:
    return GroupResult(group_id, ChangeStatus.FAILED, code, effect)
