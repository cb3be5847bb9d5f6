"""What members of Connect, Streams and Schema Registry do in a generation, and what it shows of the next.

This is in their own bytes (protocol/embedded): the fold keeps them unchanged, and reads them for events.
"""

from __future__ import annotations

from kgroup.domain import first_of
from kgroup.durations import utc
from kgroup.history.fold.events import SHOWN, duration_text
from kgroup.history.fold.view import RecordedMember, View
from kgroup.protocol.embedded.connect import ConnectWorker
from kgroup.protocol.embedded.member import CONNECT, SCHEMA_REGISTRY, Application, application_of, embedded
from kgroup.protocol.embedded.streams import StreamsThread, task_order


def application(view: View) -> Application | None:
    """Return the group's application at that moment; that of a ksqlDB query counts as Streams here."""
    return application_of("", view.protocol_type, view.assignor)


def share(view: View, member: RecordedMember) -> str | None:
    """Return a member's assignment in its generation, with its name: `w1:8083 orders-sink, orders-sink-0`.

    None for a plain consumer; "unknown" in place of what its bytes do not contain.
    """
    recognised = application(view)
    if recognised is None:
        return None
    parsed = embedded(recognised, member.client_id, member.metadata, member.assignment)
    if recognised.kind == CONNECT:
        worker = parsed.connect
        running = worker.running if worker else None
        work = "unknown" if running is None else _some(running.names) or "nothing"
        return f"{member.label if worker is None else worker.worker_id} {work}"
    if recognised.kind == SCHEMA_REGISTRY:
        instance = parsed.schema_registry
        identity = instance.identity if instance else None
        election = instance.election if instance else None
        if election is None:
            does = "unknown"
        elif election.leader is None:
            does = "has no leader"
        else:
            does = "leads" if election.leader == member.member_id else "follows"
        return f"{(identity.url if identity else None) or member.label} {does}"
    thread = parsed.streams
    name = (thread.thread if thread else None) or member.label
    given = thread.assignment if thread else None
    if given is None:
        return f"{name} unknown"
    standby = f" (standby {_some(given.standby)})" if given.standby else ""
    return f"{name} {_some(given.active) or 'nothing'}{standby}"


def _some(names: tuple[str, ...]) -> str:
    return first_of(names, SHOWN)


def handed_over(before: View, after: View) -> list[str]:
    """Return what Connect's leader revoked from workers before: they had to rejoin (KIP-415)."""
    causes = []
    for member_id, worker in sorted(_workers(before).items()):
        revoked = worker.assignment.revoked if worker.assignment else None
        if revoked and member_id in after.members:
            causes.append(
                f"generation {before.epoch} took {_some(revoked.names)} from {worker.worker_id}, "
                "which stopped them and rejoined (a cooperative hand-over)"
            )
    return causes


def new_work(before: View, after: View) -> tuple[str, bool] | None:
    """Return connectors and tasks newly owned, or no longer owned; None if not everything is known.

    For the same members before and after: a lost member leaves work without an owner for a while. Proven if
    the leader assigned by another configuration.
    """
    had, has = _all_work(before), _all_work(after)
    if had is None or has is None or had == has:
        return None
    changed = ((has - had, "came"), (had - has, "went"))
    what = "; ".join(f"{_some(tuple(sorted(names)))} {word}" for names, word in changed if names)
    old, new = (
        max((w.assignment.config_offset for w in _workers(view).values() if w.assignment), default=-1)
        for view in (before, after)
    )
    if new > old:
        return f"{what}, with a newer configuration of the connectors (config offset {old} → {new})", True
    return f"{what}, and the members are as before: the records do not say why", False


def scheduled(before: View, after: View) -> str | None:
    """Return that the generation before had scheduled this rebalance, if it was due at the last join."""
    # Without a record of the time of the last join, it is unknown whether it was due.
    if after.state_timestamp_ms < 0:
        return None
    whose, given = application(before), list[int | None]()
    if whose is not None and whose.kind not in (CONNECT, SCHEMA_REGISTRY):
        members = before.members.values()
        threads = (embedded(whose, v.client_id, v.metadata, v.assignment).streams for v in members)
        given = [thread.assignment.next_rebalance_ms for thread in threads if thread and thread.assignment]
    times = [when for when in given if when is not None and when >= 0]
    if times and min(times) == 0:
        return f"generation {before.epoch} asked for it: a task must be freed before another member runs it"
    if times and min(times) <= after.state_timestamp_ms:
        return f"generation {before.epoch} scheduled it for {utc(min(times))}: Streams looks again (KIP-441)"
    delays = [w.assignment.delay_ms for w in _workers(before).values() if w.assignment]
    since = after.state_timestamp_ms - before.state_timestamp_ms
    if before.state_timestamp_ms >= 0 and 0 < max(delays, default=0) <= since:
        waited = duration_text(max(delays))
        return f"generation {before.epoch} held back work of lost workers for {waited}, and then rejoined"
    return None


def difference(view: View, old: RecordedMember, new: RecordedMember) -> str | None:
    """Return how a member's metadata differs from that of its previous join; None for a plain consumer."""
    whose = application(view)
    if whose is None:
        return None
    was = embedded(whose, old.client_id, old.metadata, b"")
    now = embedded(whose, new.client_id, new.metadata, b"")
    if now.undecoded:
        return now.undecoded[0].text
    if was.connect and now.connect:
        offsets = was.connect.config_offset, now.connect.config_offset
        return f"config offset {offsets[0]} → {offsets[1]}" if offsets[0] != offsets[1] else ""
    if was.streams and now.streams:
        return _threads_differ(was.streams, now.streams)
    return ""


def _threads_differ(old: StreamsThread, new: StreamsThread) -> str:
    was, now = old.subscription, new.subscription
    if was is None or now is None:
        return ""
    if now.error is not None:
        return f"it says {now.error}"
    differences = []
    if was.process_id != now.process_id:
        differences.append(f"process {now.process_id}, {was.process_id} before")
    for role in ("active", "standby"):
        had, has = ({task.task for task in thread.previous if task.role == role} for thread in (was, now))
        if had != has:
            differences.append(f"{role} {_names(has)}, {_names(had)} before")
    return ", ".join(differences)


def _names(tasks: set[str]) -> str:
    return _some(tuple(sorted(tasks, key=task_order))) or "nothing"


def _workers(view: View) -> dict[str, ConnectWorker]:
    recognised = application(view)
    if recognised is None or recognised.kind != CONNECT:
        return {}
    parsed = {m: embedded(recognised, v.client_id, v.metadata, v.assignment) for m, v in view.members.items()}
    return {member_id: member.connect for member_id, member in parsed.items() if member.connect is not None}


def _all_work(view: View) -> set[str] | None:
    workers = _workers(view)
    if not workers or len(workers) < len(view.members):
        return None
    running = [worker.running for worker in workers.values()]
    return None if None in running else {name for work in running if work for name in work.names}
