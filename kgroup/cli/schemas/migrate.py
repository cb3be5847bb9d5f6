"""Schemas of `upgrade` and `downgrade`; the names of the plan are fixed (docs/json-output.md)."""

from collections.abc import Mapping

from kgroup.admin.migrate.execute import MovedOffset, RollStep
from kgroup.admin.migrate.fleet import FleetRow, LeftOut
from kgroup.admin.migrate.models import Check
from kgroup.admin.migrate.rehearse import Rehearsal
from kgroup.admin.migrate.watch import Look
from kgroup.cli.schemas.derive import model, schema_of
from kgroup.cli.schemas.parts import INTEGER, STRING, Schema, array, note, nullable, one_of, record

_VERDICT = one_of("ready", "blocked", "already", "unknown")
_CHECKS = array(schema_of(Check))
_PLAN = record(group_id=STRING, verdict=_VERDICT, checks=_CHECKS)
_EXECUTE = record(
    group_id=STRING,
    verdict=_VERDICT,
    action=one_of("converted", "roll", "none"),
    checks=_CHECKS,
    order=array(schema_of(RollStep)),
    offsets=note(
        nullable(record(committed=INTEGER, changed=array(schema_of(MovedOffset)))), "when converted"
    ),
    journal_id=nullable(STRING),
)
_WATCH = note(model(Look, timestamp=STRING), "a poll (ndjson: each that shows a change; else the last)")

_CONTEXT = note(nullable(STRING), "with --contexts")
_FLEET = record(
    groups=array(model(FleetRow, context=_CONTEXT)),
    left_out=array(model(LeftOut, context=_CONTEXT)),
)

MIGRATE: Mapping[str, Schema] = {
    "upgrade plan": {"anyOf": [_PLAN, note(_FLEET, "of several groups")]},
    "upgrade execute": _EXECUTE,
    "upgrade watch": _WATCH,
    "upgrade rehearse": schema_of(Rehearsal),
    "downgrade plan": _PLAN,
    "downgrade execute": _EXECUTE,
    "downgrade watch": _WATCH,
}
