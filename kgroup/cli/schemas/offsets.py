"""Schemas of the commands about positions and of the checks on a group."""

from collections.abc import Mapping

from kgroup.cli.schemas.groups import TYPE
from kgroup.cli.schemas.parts import INTEGER, NUMBER, STRING, Schema, array, nullable, one_of, record

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
)
TOPIC_LAG = record(
    topic=STRING,
    partitions=INTEGER,
    lag=nullable(INTEGER),
    max_time_lag_ms=nullable(INTEGER),
    consumed_per_s=nullable(NUMBER),
    produced_per_s=nullable(NUMBER),
)

OFFSETS: Mapping[str, Schema] = {
    "lag": record(
        groups=array(
            record(
                group_id=STRING,
                type=TYPE,
                state=STRING,
                total_lag=nullable(INTEGER),
                max_time_lag_ms=nullable(INTEGER),
                consumed_per_s=nullable(NUMBER),
                produced_per_s=nullable(NUMBER),
                catches_up_in_s=nullable(NUMBER),
                topics=array(TOPIC_LAG),
                offsets=array(PARTITION_LAG),
            )
        ),
        verdict=nullable(record(limit=INTEGER, unit=one_of("records", "ms"), over=array(STRING))),
    ),
}
