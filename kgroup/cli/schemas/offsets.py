"""Schemas of the commands about committed offsets and of the checks on a group."""

from collections.abc import Mapping

from kgroup.admin.change.offset_plans import PlannedGroup
from kgroup.admin.migrate.models import Check
from kgroup.admin.models import GroupResult
from kgroup.admin.read.conditions import Waited
from kgroup.admin.read.lag_report import GroupLag
from kgroup.admin.read.patterns import PatternCheck
from kgroup.admin.read.watching import Change
from kgroup.cli.schemas.checkups import CHECKUP, RECORDED
from kgroup.cli.schemas.derive import model, schema_of
from kgroup.cli.schemas.groups import SETTING_CHANGE
from kgroup.cli.schemas.parts import (
    BOOLEAN,
    CHANGED,
    INTEGER,
    NUMBER,
    OBJECT,
    STRING,
    Schema,
    array,
    each,
    note,
    nullable,
    one_of,
    record,
)
from kgroup.cli.views.lagging import TopicLag, Verdict
from kgroup.cli.views.offsets import ChangedOffset

_TEXT, _COUNT, _RATE = nullable(STRING), nullable(INTEGER), nullable(NUMBER)
_OFFSET_CHANGES = record(
    plan=record(**each(STRING, "id spec actor"), **each(_TEXT, "reason undoes")),
    groups=array(schema_of(PlannedGroup)),
    **CHANGED,
    items=array(schema_of(ChangedOffset)),
)
_EXPORTED = record(
    topic=STRING,
    **each(INTEGER, "partition committed_offset"),
    leader_epoch=note(INTEGER, "-1: unset"),
    metadata=STRING,
)
_ENTRY: dict[str, Schema] = {
    **each(STRING, "id command time"),
    "cluster_id": _TEXT,
    "time_ms": INTEGER,
    "groups": array(STRING),
}
_NEED = record(
    operation=STRING,
    resource_type=one_of("Group", "Topic", "Cluster", "TransactionalId"),
    resource_name=_TEXT,
    held=nullable(BOOLEAN),
)
_RIGHTS = record(
    **each(_TEXT, "principal group_id topic"),
    commands=array(
        record(
            command=STRING,
            usable=nullable(BOOLEAN),
            needs=array(_NEED),
            **each(array(STRING), "missing unknown acls"),
            note=_TEXT,
        )
    ),
)
_RELEASE = record(
    release=STRING, verdict=one_of("ready", "blocked", "unknown"), checks=array(schema_of(Check))
)

OFFSETS: Mapping[str, Schema] = {
    "lag": record(
        groups=array(model(GroupLag, "errors", catches_up_in_s=_RATE, topics=array(schema_of(TopicLag)))),
        verdict=note(nullable(schema_of(Verdict)), "with `--fail-above`"),
        recorded=note(nullable(RECORDED), "null without `--at`"),
    ),
    "reset-offsets": _OFFSET_CHANGES,
    "offsets export": record(
        groups=note(
            array(record(group_id=STRING, type=_TEXT, no_offsets=_TEXT, offsets=array(_EXPORTED))),
            "`offsets import` and `delete --restore` read it back",
        )
    ),
    "offsets import": _OFFSET_CHANGES,
    "offsets delete": _OFFSET_CHANGES,
    "offsets clone": _OFFSET_CHANGES,
    # With --restore the output is that of `offsets import`.
    "delete": {
        "anyOf": [
            record(
                **CHANGED,
                export=note(_TEXT, "the file that keeps the offsets"),
                items=array(model(GroupResult, stale_ms=_COUNT)),
            ),
            _OFFSET_CHANGES,
        ]
    },
    "journal list": record(
        entries=array(
            record(
                **_ENTRY,
                end_ms=_COUNT,
                **each(_TEXT, "actor reason undone_by"),
                results=note(
                    nullable({"type": "object", "additionalProperties": INTEGER}),
                    "a count of each result; null when cut off",
                ),
            )
        )
    ),
    "journal show": record(
        entry=record(
            **_ENTRY,
            plan=OBJECT,
            before=note(OBJECT, "`offsets` by group: [topic, partition, offset, leader epoch, metadata]"),
            results=nullable(array(OBJECT)),
        )
    ),
    "wait": record(condition=STRING, groups=array(schema_of(Waited))),
    "watch": record(
        events=note(
            array(model(Change, time_ms=INTEGER, time=STRING)),
            "`--events` and ndjson print each as it is seen",
        ),
        groups=array(
            record(group_id=STRING, state=note(_TEXT, 'at the end; null: does not exist; or "not seen"'))
        ),
    ),
    "config get": record(
        group_id=STRING,
        settings=array(record(setting=STRING, value=_TEXT, origin=one_of("group", "broker", "default"))),
    ),
    "config set": record(
        group_id=STRING,
        **CHANGED,
        settings=array(
            record(**SETTING_CHANGE, origin=STRING, result=one_of("planned", "unchanged", "done"))
        ),
    ),
    "regex check": model(PatternCheck, topics=note(_COUNT, "how many were tested")),
    "doctor": {
        "anyOf": [
            record(
                groups=array(CHECKUP),
                left_out=note(array(STRING), "checks that the verdicts do not count, by `--without`"),
                recorded=note(nullable(RECORDED), "null without `--at`"),
            ),
            _RIGHTS,
            note(_RELEASE, "with `--kafka`"),
        ]
    },
}
