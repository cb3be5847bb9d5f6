"""Schemas of what members of Connect, Streams and Schema Registry say (kgroup/protocol/embedded)."""

from kgroup.cli.schemas.parts import BOOLEAN, INTEGER, STRING, array, nullable, one_of, record

_PARTITIONS = array(record(topic=STRING, partitions=array(INTEGER)))
_WORK = record(connectors=array(STRING), tasks=array(record(connector=STRING, tasks=array(INTEGER))))
CONNECT_WORKER = record(
    version=INTEGER,
    worker_id=STRING,
    url=STRING,
    config_offset=INTEGER,
    before=nullable(_WORK),
    running=nullable(_WORK),
    assignment=nullable(
        record(
            version=INTEGER,
            error=nullable(STRING),
            leader=STRING,
            leader_url=STRING,
            config_offset=INTEGER,
            given=_WORK,
            revoked=_WORK,
            delay_ms=INTEGER,
        )
    ),
)
STREAMS_THREAD = record(
    thread=nullable(STRING),
    subscription=nullable(
        record(
            version=INTEGER,
            latest_version=nullable(INTEGER),
            process_id=STRING,
            previous=array(
                record(task=STRING, role=one_of("active", "standby"), offset_sum=nullable(INTEGER))
            ),
            user_endpoint=nullable(STRING),
            unique_field=nullable(INTEGER),
            error=nullable(STRING),
            client_tags=array(record(key=STRING, value=STRING)),
        )
    ),
    assignment=nullable(
        record(
            version=INTEGER,
            latest_version=nullable(INTEGER),
            active=array(STRING),
            standby=array(STRING),
            hosts=array(record(host=STRING, port=INTEGER, active=_PARTITIONS, standby=_PARTITIONS)),
            error=nullable(STRING),
            next_rebalance_ms=nullable(INTEGER),
        )
    ),
)
_REGISTRY_IDENTITY = record(
    host=nullable(STRING),
    port=nullable(INTEGER),
    scheme=nullable(STRING),
    leader_eligible=nullable(BOOLEAN),
)
REGISTRY_INSTANCE = record(
    identity=nullable(_REGISTRY_IDENTITY),
    election=nullable(
        record(error=nullable(STRING), leader=nullable(STRING), leader_identity=nullable(_REGISTRY_IDENTITY))
    ),
)
UNDECODED = record(
    part=one_of("metadata", "assignment"), size=INTEGER, version=nullable(INTEGER), reason=STRING
)
APPLICATION = record(
    kind=one_of("connect", "streams", "ksqldb", "schema-registry"),
    service_id=nullable(STRING),
    query_id=nullable(STRING),
)
