"""`kgroup delete --zookeeper`: groups out of a tree, exported first."""

import time
from dataclasses import dataclass

from kgroup.admin import shell
from kgroup.admin.change.journal import Journal
from kgroup.admin.models import GroupResult
from kgroup.cli.env.invocation import Env
from kgroup.cli.env.zookeeper import Opened, open_groups
from kgroup.cli.frame.changes import Consent, with_undo
from kgroup.cli.inputs.group_names import Named, every, expand
from kgroup.cli.output.result import Result
from kgroup.errors import SafetyRefused

Ages = dict[str, int | None]


@dataclass(frozen=True, slots=True)
class Deleting:
    """What the options of `delete` ask for: which groups, where their offsets are kept, and why."""

    names: list[str] | None
    stale_s: float | None
    file: str | None
    incomplete: bool
    consent: Consent
    reason: str | None


def delete(env: Env, where: str, told: Deleting) -> Result:
    """What deleting the groups would do, or did; committed offsets are in a file before any node goes."""
    from kgroup.cli.views.deletion import deletion

    with open_groups(env, where) as opened:
        named = expand(opened.groups, told.names, change=True) if told.names else every(opened.groups)
        ages: Ages = {}
        if told.stale_s is not None:
            ages = _stale(opened, named, int(told.stale_s * 1000))
            named = Named(tuple(ages), named.unseen)
        place = opened.identity()
        planned = opened.groups.plan_delete(named.groups)
        wanted = [item.group_id for item in planned if item.planned]
        shown = deletion(planned, ages, place, None, None, named.unseen)
        if not told.consent.execute or not wanted:
            return shown
        told.consent.ask(
            env, shown, f"delete {len(wanted)} group(s) with their committed offsets from ZooKeeper?"
        )
        # Keep the offsets in a file; SafetyRefused where some may be missing and `incomplete` is off.
        from kgroup.cli.views.offset_exports import keep

        now, doubts = opened.groups.look(wanted)
        for found in now.values():
            if found.error:
                raise found.error
        if doubts and not told.incomplete:
            hint = "mend or accept that with --incomplete-export"
            raise SafetyRefused(f"nothing deleted: the export may lack offsets: {doubts[0].message}", hint)
        file = keep(told.file, now, opened.identity())
        env.note(f"committed offsets kept in {file}")
        done = opened.groups.delete(wanted, opened.session.ask_all, Journal.default(), told.reason)
    results: dict[str, GroupResult] = {item.group_id: item for item in done.items}
    items = [results.get(item.group_id, item) for item in planned]
    result = deletion(items, ages, place, done.journal_id, file, named.unseen)
    into_kafka = shell.command("offsets import", file)
    return with_undo(result, f"undo: none in ZooKeeper; the offsets into Kafka: {into_kafka} -b HOST:PORT")


def _stale(opened: Opened, named: Named, limit_ms: int) -> Ages:
    """The groups without consumers that wrote no offset for `limit_ms`, and for how long."""
    now_ms = time.time_ns() // 1_000_000
    written = opened.groups.silent_since_ms(named.groups)
    ages = {name: max(now_ms - at, 0) for name, at in written.items() if at is not None}
    return {name: age for name, age in ages.items() if age >= limit_ms}
