"""Schemas of the commands about groups; the field names are fixed (docs/json-output.md)."""

from collections.abc import Mapping

from kgroup.cli.schemas.parts import BOOLEAN, INTEGER, STRING, Schema, array, nullable, one_of, record

NODE = record(id=INTEGER, host=STRING, port=INTEGER)
ASSIGNMENT = array(record(topic=STRING, partitions=array(INTEGER)))
# An old broker does not tell the type: "".
TYPE = one_of("classic", "consumer", "share", "streams", "")

MEMBER = record(
    member_id=STRING,
    instance_id=nullable(STRING),
    client_id=STRING,
    host=STRING,
    rack_id=nullable(STRING),
    protocol=STRING,
    member_epoch=nullable(INTEGER),
    state=STRING,
    subscribed_topics=array(STRING),
    subscribed_regex=nullable(STRING),
    assignment=ASSIGNMENT,
    target_assignment=nullable(ASSIGNMENT),
    is_leader=nullable(BOOLEAN),
)
OFFSET = record(
    topic=STRING,
    partition=INTEGER,
    committed_offset=nullable(INTEGER),
    log_end_offset=nullable(INTEGER),
    lag=nullable(INTEGER),
    leader_epoch=nullable(INTEGER),
    metadata=nullable(STRING),
    member_id=nullable(STRING),
    instance_id=nullable(STRING),
)
FINDING = record(
    code={"type": "string", "pattern": "^KG[0-9]{3}$"},
    severity=one_of("info", "warn", "error"),
    message=STRING,
    hint=nullable(STRING),
)
GROUP = record(
    group_id=STRING,
    type=TYPE,
    protocol_type=STRING,
    state=STRING,
    assignor=nullable(STRING),
    generation=nullable(INTEGER),
    group_epoch=nullable(INTEGER),
    assignment_epoch=nullable(INTEGER),
    coordinator=nullable(NODE),
    offsets_partition=nullable(INTEGER),
    members=array(MEMBER),
    offsets=array(OFFSET),
    total_lag=nullable(INTEGER),
    findings=array(FINDING),
)

GROUPS: Mapping[str, Schema] = {
    "list": record(
        groups=array(
            record(
                group_id=STRING,
                type=TYPE,
                protocol_type=STRING,
                state=STRING,
                members=nullable(INTEGER),
                coordinator=NODE,
            )
        )
    ),
    "describe": record(groups=array(GROUP)),
    "coordinator": record(
        groups=array(record(group_id=STRING, offsets_partition=nullable(INTEGER), coordinator=nullable(NODE)))
    ),
}
