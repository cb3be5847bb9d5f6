"""Schemas of the commands about committed offsets and of the checks on a group."""

from collections.abc import Mapping

from kgroup.cli.schemas.groups import OPEN_PRODUCER, TYPE
from kgroup.cli.schemas.parts import BOOLEAN, INTEGER, NUMBER, STRING, Schema, array, nullable, one_of, record

PARTITION_LAG = record(
    topic=STRING,
    partition=INTEGER,
    committed_offset=nullable(INTEGER),
    log_end_offset=nullable(INTEGER),
    lag=nullable(INTEGER),
    time_lag_ms=nullable(INTEGER),
    consumed_per_s=nullable(NUMBER),
    produced_per_s=nullable(NUMBER),
    instance_id=nullable(STRING),
    member_id=nullable(STRING),
    error=nullable(STRING),
    error_code=nullable(STRING),
    reason=nullable(STRING),
    log_start_offset=nullable(INTEGER),
    last_stable_offset=nullable(INTEGER),
    held_open_by=nullable(array(OPEN_PRODUCER)),
)
TOPIC_LAG = record(
    topic=STRING,
    partitions=INTEGER,
    lag=nullable(INTEGER),
    lag_at_least=nullable(INTEGER),
    unknown_partitions=INTEGER,
    max_time_lag_ms=nullable(INTEGER),
    consumed_per_s=nullable(NUMBER),
    produced_per_s=nullable(NUMBER),
)
OFFSET_CHANGES = record(
    plan=record(
        id=STRING,
        spec=STRING,
        actor=STRING,
        reason=nullable(STRING),
        undoes=nullable(STRING),
    ),
    groups=array(
        record(
            group_id=STRING,
            type=nullable(TYPE),
            state=STRING,
            members=nullable(INTEGER),
            refusal=nullable(STRING),
            hint=nullable(STRING),
            error_code=nullable(STRING),
        )
    ),
    executed=BOOLEAN,
    journal_id=nullable(STRING),
    items=array(
        record(
            group_id=STRING,
            topic=STRING,
            partition=INTEGER,
            current_offset=nullable(INTEGER),
            new_offset=nullable(INTEGER),
            change=nullable(INTEGER),
            current_leader_epoch=nullable(INTEGER),
            new_leader_epoch=nullable(INTEGER),
            current_metadata=nullable(STRING),
            new_metadata=nullable(STRING),
            result=one_of("planned", "unchanged", "done", "refused", "failed"),
            error_code=nullable(STRING),
            effect=STRING,
        )
    ),
)
JOURNAL_ENTRY = record(
    id=STRING,
    command=STRING,
    cluster_id=nullable(STRING),
    time_ms=INTEGER,
    time=STRING,
    end_ms=nullable(INTEGER),
    groups=array(STRING),
    actor=nullable(STRING),
    reason=nullable(STRING),
    results=nullable({"type": "object", "additionalProperties": INTEGER}),
    undone_by=nullable(STRING),
)

_CHECKUPS = record(
    groups=array(
        record(
            group_id=STRING,
            type=TYPE,
            state=STRING,
            verdict=one_of("healthy", "sick", "unknown"),
            healthy=nullable(BOOLEAN),
            findings=array(
                record(
                    code=STRING,
                    severity=one_of("info", "warn", "error"),
                    message=STRING,
                    hint=nullable(STRING),
                    evidence=array(STRING),
                )
            ),
            skipped=array(STRING),
        )
    )
)
_RIGHTS = record(
    principal=nullable(STRING),
    group_id=nullable(STRING),
    topic=nullable(STRING),
    commands=array(
        record(
            command=STRING,
            usable=nullable(BOOLEAN),
            needs=array(
                record(
                    operation=STRING,
                    resource_type=one_of("Group", "Topic", "Cluster", "TransactionalId"),
                    resource_name=nullable(STRING),
                    held=nullable(BOOLEAN),
                )
            ),
            missing=array(STRING),
            unknown=array(STRING),
            acls=array(STRING),
            note=nullable(STRING),
        )
    ),
)
OFFSETS: Mapping[str, Schema] = {
    "lag": record(
        groups=array(
            record(
                group_id=STRING,
                type=TYPE,
                no_offsets=nullable(STRING),
                state=STRING,
                total_lag=nullable(INTEGER),
                lag_at_least=nullable(INTEGER),
                unknown_partitions=INTEGER,
                max_time_lag_ms=nullable(INTEGER),
                time_lag_at_least_ms=nullable(INTEGER),
                consumed_per_s=nullable(NUMBER),
                produced_per_s=nullable(NUMBER),
                catches_up_in_s=nullable(NUMBER),
                topics=array(TOPIC_LAG),
                offsets=array(PARTITION_LAG),
            )
        ),
        verdict=nullable(
            record(
                limit=INTEGER,
                unit=one_of("records", "ms"),
                over=array(STRING),
                unknown=array(
                    record(group_id=STRING, reason=STRING, never_committed=BOOLEAN, beyond_end=BOOLEAN)
                ),
            )
        ),
    ),
    "reset-offsets": OFFSET_CHANGES,
    "offsets export": record(
        groups=array(
            record(
                group_id=STRING,
                no_offsets=nullable(STRING),
                offsets=array(
                    record(
                        topic=STRING,
                        partition=INTEGER,
                        committed_offset=INTEGER,
                        leader_epoch=INTEGER,
                        metadata=STRING,
                    )
                ),
            )
        )
    ),
    "offsets import": OFFSET_CHANGES,
    "offsets delete": OFFSET_CHANGES,
    "offsets clone": OFFSET_CHANGES,
    # With --restore it answers as `offsets import` does.
    "delete": {
        "anyOf": [
            record(
                executed=BOOLEAN,
                journal_id=nullable(STRING),
                export=nullable(STRING),
                items=array(
                    record(
                        group_id=STRING,
                        result=one_of("planned", "deleted", "not_found", "failed"),
                        error_code=nullable(STRING),
                        effect=STRING,
                        stale_ms=nullable(INTEGER),
                    )
                ),
            ),
            OFFSET_CHANGES,
        ]
    },
    "journal list": record(entries=array(JOURNAL_ENTRY)),
    "journal show": record(
        entry=record(
            id=STRING,
            command=STRING,
            cluster_id=nullable(STRING),
            time_ms=INTEGER,
            time=STRING,
            groups=array(STRING),
            plan={"type": "object"},
            before={"type": "object"},
            results=nullable(array({"type": "object"})),
        )
    ),
    "wait": record(
        condition=STRING,
        groups=array(
            record(
                group_id=STRING,
                held=BOOLEAN,
                state=nullable(STRING),
                members=nullable(INTEGER),
                total_lag=nullable(INTEGER),
                waited_s=NUMBER,
            )
        ),
    ),
    "watch": record(
        events=array(
            record(
                time_ms=INTEGER,
                time=STRING,
                group_id=STRING,
                event=STRING,
                member_id=nullable(STRING),
                instance_id=nullable(STRING),
                detail={"type": "object"},
            )
        ),
        groups=array(record(group_id=STRING, state=nullable(STRING))),
    ),
    "config get": record(
        group_id=STRING,
        settings=array(
            record(setting=STRING, value=nullable(STRING), origin=one_of("group", "broker", "default"))
        ),
    ),
    "config set": record(
        group_id=STRING,
        executed=BOOLEAN,
        journal_id=nullable(STRING),
        settings=array(
            record(setting=STRING, before=nullable(STRING), after=nullable(STRING), origin=STRING)
        ),
    ),
    "regex check": record(
        pattern=STRING,
        valid=BOOLEAN,
        reason=nullable(STRING),
        position=nullable(INTEGER),
        matches=array(STRING),
        prefix_only=array(STRING),
        differences=array(record(severity=one_of("error", "warn"), message=STRING)),
        topics=nullable(INTEGER),
    ),
    "doctor": {"anyOf": [_CHECKUPS, _RIGHTS]},
}
