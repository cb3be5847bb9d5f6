"""Schemas of `upgrade` and `downgrade`; the names of the plan are fixed (docs/json-output.md)."""

from collections.abc import Mapping

from kgroup.cli.schemas.groups import ASSIGNMENT
from kgroup.cli.schemas.parts import BOOLEAN, INTEGER, STRING, Schema, array, nullable, one_of, record

CHECK = record(
    code=STRING,
    status=one_of("ok", "warn", "block", "info", "unknown"),
    message=STRING,
    hint=nullable(STRING),
    evidence={"type": "object"},
    reason=nullable(STRING),
)
VERDICT = one_of("ready", "blocked", "already", "unknown")
PLAN = record(group_id=STRING, verdict=VERDICT, checks=array(CHECK))

EXECUTE = record(
    group_id=STRING,
    verdict=VERDICT,
    action=one_of("converted", "roll", "none"),
    checks=array(CHECK),
    order=array(
        record(
            member_id=STRING,
            instance_id=nullable(STRING),
            client_id=STRING,
            host=STRING,
            is_leader=nullable(BOOLEAN),
        )
    ),
    offsets=nullable(
        record(
            committed=INTEGER,
            changed=array(
                record(topic=STRING, partition=INTEGER, before=nullable(INTEGER), after=nullable(INTEGER))
            ),
        )
    ),
    journal_id=nullable(STRING),
)
WATCH = record(
    timestamp_ms=INTEGER,
    timestamp=STRING,
    group_id=STRING,
    direction=one_of("upgrade", "downgrade"),
    status=one_of("watching", "done", "stuck"),
    type=nullable(STRING),
    state=nullable(STRING),
    members=INTEGER,
    moved=INTEGER,
    remaining=array(STRING),
    group_epoch=nullable(INTEGER),
    assignment_epoch=nullable(INTEGER),
    unowned=ASSIGNMENT,
    unowned_partition_ms=record(at_least=INTEGER, at_most=INTEGER),
    waits=array(record(code=STRING, message=STRING, hint=nullable(STRING), since_ms=INTEGER)),
    stalled_ms=INTEGER,
)
OUTCOME = one_of("converted", "refused", "not-needed", "unfinished")
REHEARSAL = record(
    group_id=STRING,
    source=STRING,
    copied=INTEGER,
    upgrade=OUTCOME,
    downgrade=OUTCOME,
    offsets_kept=BOOLEAN,
    steps=array(
        record(
            phase=one_of("upgrade", "downgrade"),
            action=STRING,
            member=STRING,
            type=one_of("classic", "consumer"),
            state=STRING,
            epoch=INTEGER,
            assignment_epoch=nullable(INTEGER),
            error_code=nullable(STRING),
            message=nullable(STRING),
            records=array({"type": "object"}),
        )
    ),
)

MIGRATE: Mapping[str, Schema] = {
    "upgrade plan": PLAN,
    "upgrade execute": EXECUTE,
    "upgrade watch": WATCH,
    "upgrade rehearse": REHEARSAL,
    "downgrade plan": PLAN,
    "downgrade execute": EXECUTE,
    "downgrade watch": WATCH,
}
