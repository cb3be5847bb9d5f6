"""Schemas of the commands about groups; the field names are fixed (docs/json-output.md)."""

from collections.abc import Mapping

from kgroup.cli.schemas.applications import (
    APPLICATION,
    CONNECT_WORKER,
    REGISTRY_INSTANCE,
    STREAMS_THREAD,
    UNDECODED,
)
from kgroup.cli.schemas.parts import BOOLEAN, INTEGER, NUMBER, STRING, Schema, array, nullable, one_of, record

NODE = record(id=INTEGER, host=STRING, port=INTEGER)
ASSIGNMENT = array(record(topic=STRING, partitions=array(INTEGER)))
TYPE = one_of("classic", "consumer", "share", "streams", "zookeeper", "unknown")
_TASKS = array(record(subtopology_id=STRING, partitions=array(INTEGER)))
TASKS = record(active=_TASKS, standby=_TASKS, warmup=_TASKS)
PROCESS = record(
    process_id=STRING,
    topology_epoch=INTEGER,
    endpoint=nullable(STRING),
    client_tags=array(record(key=STRING, value=STRING)),
)
TOPOLOGY = record(
    epoch=INTEGER,
    subtopologies=array(
        record(
            subtopology_id=STRING,
            source_topics=array(STRING),
            repartition_topics=array(STRING),
            changelog_topics=array(STRING),
        )
    ),
)

MEMBER = record(
    member_id=STRING,
    instance_id=nullable(STRING),
    client_id=nullable(STRING),
    host=nullable(STRING),
    rack_id=nullable(STRING),
    protocol=STRING,
    member_epoch=nullable(INTEGER),
    state=STRING,
    subscribed_topics=nullable(array(STRING)),
    subscribed_regex=nullable(STRING),
    assignment=nullable(ASSIGNMENT),
    target_assignment=nullable(ASSIGNMENT),
    is_leader=nullable(BOOLEAN),
    instance_id_known=BOOLEAN,
    tasks=nullable(TASKS),
    target_tasks=nullable(TASKS),
    process=nullable(PROCESS),
    session_timeout_ms=nullable(INTEGER),
    failed_pings=nullable(INTEGER),
    connect=nullable(CONNECT_WORKER),
    streams=nullable(STREAMS_THREAD),
    schema_registry=nullable(REGISTRY_INSTANCE),
    undecoded=array(UNDECODED),
)
_SCRAM = record(mechanism=STRING, iterations=INTEGER)
OPEN_PRODUCER = record(
    producer_id=INTEGER, producer_epoch=INTEGER, start_offset=INTEGER, last_timestamp_ms=INTEGER
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
    log_start_offset=nullable(INTEGER),
    last_stable_offset=nullable(INTEGER),
    held_open_by=nullable(array(OPEN_PRODUCER)),
    reason=nullable(STRING),
    assigned_epoch=nullable(INTEGER),
    owner_thread=nullable(STRING),
)
_NAMES = nullable(array(STRING))
REGISTRATION = record(
    instance_ids=_NAMES,
    missing=_NAMES,
    held=_NAMES,
    wait_ms=nullable(INTEGER),
    target_size=nullable(INTEGER),
    active=_NAMES,
    standby=_NAMES,
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
    members=nullable(array(MEMBER)),
    offsets=array(OFFSET),
    total_lag=nullable(INTEGER),
    lag_at_least=nullable(INTEGER),
    unknown_partitions=INTEGER,
    coordinator_epoch=nullable(INTEGER),
    application=nullable(APPLICATION),
    no_offsets=nullable(STRING),
    topology=nullable(TOPOLOGY),
    registration=nullable(REGISTRATION),
    registration_known=BOOLEAN,
    findings=array(FINDING),
)

TOPIC = record(
    name=STRING,
    topic_id=STRING,
    internal=BOOLEAN,
    partitions=array(
        record(
            partition=INTEGER,
            leader=INTEGER,
            leader_epoch=INTEGER,
            replicas=array(INTEGER),
            isr=array(INTEGER),
        )
    ),
)

METRIC = record(
    mbean=STRING,
    name=STRING,
    value=nullable(NUMBER),
    tags={"type": "object", "additionalProperties": STRING},
    total=BOOLEAN,
)

_ACL: Mapping[str, Schema] = {
    "resource_type": STRING,
    "name": STRING,
    "pattern": STRING,
    "principal": STRING,
    "host": STRING,
    "operation": STRING,
    "permission": one_of("ALLOW", "DENY"),
}

_REGISTRATION = record(
    group_id=STRING,
    executed=BOOLEAN,
    journal_id=nullable(STRING),
    instances=array(
        record(
            instance_id=STRING,
            member_id=nullable(STRING),
            registered=BOOLEAN,
            result=one_of("planned", "done", "unchanged", "not_found"),
            effect=STRING,
        )
    ),
    missing=array(STRING),
    settings=array(record(setting=STRING, before=nullable(STRING), after=nullable(STRING))),
)

GROUPS: Mapping[str, Schema] = {
    "list": record(
        groups=array(
            record(
                group_id=STRING,
                type=nullable(TYPE),
                protocol_type=STRING,
                state=nullable(STRING),
                members=nullable(INTEGER),
                coordinator=nullable(NODE),
            )
        )
    ),
    "describe": record(groups=array(GROUP)),
    "remove-members": record(
        group_id=STRING,
        plan=record(id=STRING, valid_while={"type": "object", "minProperties": 1}),
        executed=BOOLEAN,
        items=array(
            record(
                instance_id=nullable(STRING),
                member_id=nullable(STRING),
                result=one_of("removed", "not_found", "failed", "planned"),
                error_code=nullable(STRING),
                effect=STRING,
            )
        ),
    ),
    "member register": _REGISTRATION,
    "member unregister": _REGISTRATION,
    "cluster status": record(
        cluster_id=nullable(STRING),
        controller_id=nullable(INTEGER),
        brokers=array(NODE),
        topics=nullable(INTEGER),
        partitions=nullable(INTEGER),
        leaderless=nullable(INTEGER),
        topics_seen=INTEGER,
        metrics=nullable(array(METRIC)),
        metrics_note=nullable(STRING),
    ),
    "cluster topics": record(topics=array(TOPIC)),
    "cluster create-topic": record(topic=TOPIC, journal_id=STRING),
    "cluster acl add": record(acls=array(record(**_ACL)), journal_id=STRING),
    "cluster acl list": record(acls=array(record(**_ACL))),
    "cluster acl remove": record(
        acls=array(record(**_ACL, result=one_of("planned", "removed", "gone-before"))),
        journal_id=nullable(STRING),
    ),
    "cluster user add": record(user=STRING, mechanisms=array(_SCRAM), existed=BOOLEAN, journal_id=STRING),
    "cluster user list": record(users=array(record(user=STRING, mechanisms=array(_SCRAM)))),
    "cluster user remove": record(user=STRING, mechanisms=array(STRING), journal_id=STRING),
    "coordinator": record(
        groups=array(record(group_id=STRING, offsets_partition=nullable(INTEGER), coordinator=nullable(NODE)))
    ),
}
