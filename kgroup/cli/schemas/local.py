"""Schemas of the commands that need no cluster."""

from collections.abc import Mapping

from kgroup.cli.schemas.parts import BOOLEAN, INTEGER, NUMBER, STRING, Schema, array, nullable, one_of, record

_SETTING = record(setting=STRING, value=STRING)

LOCAL: Mapping[str, Schema] = {
    "simulate": record(
        scenario=nullable(STRING),
        results=array(
            record(
                protocol=one_of("classic", "consumer", "push"),
                static=BOOLEAN,
                members=INTEGER,
                partitions=INTEGER,
                rebalances=INTEGER,
                assignments=INTEGER,
                stop_the_world_ms=INTEGER,
                unowned_partition_ms=INTEGER,
                partitions_moved=INTEGER,
                duplicates=INTEGER,
                commits_only_relaxed_check_accepted=INTEGER,
                commits_both_checks_refused=INTEGER,
                messages_per_member_minute=NUMBER,
                simulated_ms=INTEGER,
                events=INTEGER,
                registered=BOOLEAN,
                target_size=nullable(INTEGER),
            )
        ),
        run=nullable(
            record(
                seed=INTEGER,
                steps=INTEGER,
                simulated_ms=INTEGER,
                fingerprint=STRING,
                violation=nullable(STRING),
                commits_only_relaxed_check_accepted=INTEGER,
                commits_both_checks_refused=INTEGER,
                events=array(record(at_ms=INTEGER, kind=STRING, group_id=nullable(STRING), detail=STRING)),
            )
        ),
    ),
    "explain": record(
        entries=array(
            record(
                name=STRING,
                kind=one_of("error", "group-state", "member-state", "finding"),
                meaning=STRING,
                classic=nullable(STRING),
                consumer=nullable(STRING),
                cause=nullable(STRING),
                next=array(STRING),
                code=nullable(INTEGER),
                retriable=nullable(BOOLEAN),
                aliases=array(STRING),
            )
        )
    ),
    "config show": record(
        config_file=STRING,
        target=STRING,
        settings=array(record(setting=STRING, value=STRING, origin=STRING)),
    ),
    "context list": record(
        config_file=STRING,
        current=nullable(STRING),
        contexts=array(record(name=STRING, current=BOOLEAN, target=STRING)),
    ),
    "context use": record(current=STRING, previous=nullable(STRING)),
    "context show": record(name=STRING, current=BOOLEAN, settings=array(_SETTING)),
}
