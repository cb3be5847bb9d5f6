"""Schemas of the commands about groups; the field names are fixed (docs/json-output.md)."""

from collections.abc import Mapping

from kgroup.admin.change.registering import Registrant
from kgroup.admin.migrate.execute import MovedOffset, RollStep
from kgroup.admin.migrate.fleet import FleetRow, LeftOut
from kgroup.admin.migrate.models import Check
from kgroup.admin.migrate.rehearse import Rehearsal, Rehearsed
from kgroup.admin.migrate.watch import Look
from kgroup.admin.migrate.wave_state import WaveRun
from kgroup.admin.models import GroupDescription, GroupListing, GroupLocation, ItemResult, TopicDescription
from kgroup.admin.topics import ClusterStatus
from kgroup.admin.users import ScramUser
from kgroup.broker.metrics import Metric
from kgroup.cli.explanations.entry import Entry
from kgroup.cli.schemas.checkups import CHECKUP
from kgroup.cli.schemas.derive import model, schema_of
from kgroup.cli.schemas.parts import (
    BOOLEAN,
    CHANGED,
    INTEGER,
    STRING,
    Schema,
    array,
    each,
    note,
    nullable,
    one_of,
    record,
)
from kgroup.simulation.play.planning import PlanResult
from kgroup.simulation.play.trace import Line

GROUP = schema_of(GroupDescription)
SETTING_CHANGE: dict[str, Schema] = {"setting": STRING, **each(nullable(STRING), "before after")}
_TOPIC = schema_of(TopicDescription)
_ACL: dict[str, Schema] = {
    **each(STRING, "resource_type name pattern principal host operation"),
    "permission": one_of("ALLOW", "DENY"),
}
_ACLS = array(record(**_ACL))
_REGISTRATION = record(
    group_id=STRING,
    **CHANGED,
    instances=array(
        model(
            Registrant,
            member_id=note(nullable(STRING), "null for one that is not in the group"),
            registered=note(BOOLEAN, "afterwards"),
            result=one_of("planned", "done", "unchanged", "not_found"),
        )
    ),
    missing=note(array(STRING), "registered afterwards and not in the group"),
    settings=array(record(**SETTING_CHANGE)),
)
_PARAMETER: dict[str, Schema] = {
    **each(STRING, "name usage help"),
    **each(BOOLEAN, "required repeatable"),
}
_OPTION: dict[str, Schema] = {**_PARAMETER, "spellings": array(STRING), "takes_value": BOOLEAN}
GROUPS: Mapping[str, Schema] = {
    "list": record(groups=array(schema_of(GroupListing))),
    "describe": record(groups=array(GROUP)),
    "coordinator": record(groups=array(schema_of(GroupLocation))),
    "remove-members": record(
        group_id=STRING,
        plan=record(id=STRING, valid_while={"type": "object", "minProperties": 1}),
        **CHANGED,
        items=array(schema_of(ItemResult)),
    ),
    "member register": _REGISTRATION,
    "member unregister": _REGISTRATION,
    "cluster status": model(
        ClusterStatus,
        "errors",
        metrics=note(
            nullable(array(schema_of(Metric))),
            "see [metrics](metrics.md); null on a remote cluster, or a folder served without `--metrics`",
        ),
        metrics_note=note(nullable(STRING), "why there are no metrics"),
    ),
    "cluster topics": record(topics=array(_TOPIC)),
    "cluster create-topic": record(topic=_TOPIC, journal_id=STRING),
    "cluster acl list": record(acls=note(_ACLS, "in Kafka's words")),
    "cluster acl add": record(
        acls=_ACLS,
        unchanged=note(_ACLS, "those of them that were there before"),
        journal_id=note(nullable(STRING), "null: every rule was there"),
    ),
    "cluster acl remove": record(
        acls=array(
            record(**_ACL, result=note(one_of("planned", "removed", "gone-before"), "removed meanwhile"))
        ),
        **CHANGED,
    ),
    "cluster user list": record(
        users=note(array(schema_of(ScramUser)), "never a password or anything derived from one")
    ),
    "cluster user add": model(
        ScramUser, existed=note(BOOLEAN, "whether there was such a user before"), journal_id=STRING
    ),
    "cluster user remove": record(user=STRING, mechanisms=array(STRING), journal_id=STRING),
}


LOCAL: Mapping[str, Schema] = {
    "simulate": record(
        scenario=nullable(STRING),
        results=array(model(PlanResult, "history")),
        run=note(
            nullable(
                record(
                    seed=INTEGER,
                    steps=INTEGER,
                    simulated_ms=INTEGER,
                    fingerprint=STRING,
                    violation=nullable(STRING),
                    commits_only_relaxed_check_accepted=INTEGER,
                    commits_both_checks_refused=INTEGER,
                    events=array(schema_of(Line)),
                )
            ),
            "with `--seed`; ndjson prints its events then",
        ),
    ),
    "explain": record(
        entries=array(model(Entry, severity=nullable(one_of("error", "warn", "info")))),
        lines=note(
            array(
                record(
                    line=INTEGER,
                    entry=STRING,
                    source=STRING,
                    group=nullable(STRING),
                    topic=nullable(STRING),
                    member_id=nullable(STRING),
                    instance_id=nullable(STRING),
                )
            ),
            "the known lines of a log, the first of each entry, and the names in it",
        ),
        now=note(
            nullable(array(CHECKUP)), "what `doctor` finds in their groups; null where no cluster was asked"
        ),
    ),
    "config show": record(
        config_file=STRING,
        target=STRING,
        settings=note(array(record(setting=STRING, value=STRING, origin=STRING)), "secrets as `********`"),
    ),
    "options": record(options=array(record(**_OPTION, panel=STRING))),
    "commands": record(
        commands=array(
            record(
                command=STRING,
                summary=STRING,
                description=nullable(STRING),
                usage=STRING,
                arguments=array(record(**_PARAMETER)),
                options=array(record(**_OPTION)),
                examples=array(record(line=STRING, comment=STRING)),
                schema=nullable(STRING),
            )
        )
    ),
    "context list": record(
        config_file=STRING,
        current=nullable(STRING),
        contexts=array(record(name=STRING, current=BOOLEAN, target=STRING)),
    ),
    "context use": record(current=STRING, previous=nullable(STRING)),
    "context show": record(
        name=STRING, current=BOOLEAN, settings=array(record(setting=STRING, value=STRING))
    ),
}


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

_REHEARSED = record(groups=array(schema_of(Rehearsed)), left_out=array(schema_of(LeftOut)))

MIGRATE: Mapping[str, Schema] = {
    "upgrade plan": {"anyOf": [_PLAN, note(_FLEET, "of several groups")]},
    "upgrade execute": _EXECUTE,
    "upgrade watch": _WATCH,
    "upgrade run": record(**CHANGED, state_file=STRING, waves=array(schema_of(WaveRun))),
    "upgrade rehearse": {"anyOf": [schema_of(Rehearsal), note(_REHEARSED, "of several groups")]},
    "downgrade plan": _PLAN,
    "downgrade execute": _EXECUTE,
    "downgrade watch": _WATCH,
}
