"""A member's bytes by the protocol type of its group, for the applications known here."""

import re
from dataclasses import dataclass
from typing import Annotated

from kgroup.errors import DecodeError
from kgroup.protocol.embedded import connect, schema_registry, streams
from kgroup.protocol.embedded.connect import ConnectWorker
from kgroup.protocol.embedded.schema_registry import RegistryInstance
from kgroup.protocol.embedded.streams import StreamsThread
from kgroup.protocol.embedded.undecoded import ASSIGNMENT, METADATA, Undecoded
from kgroup.protocol.subscription import PROTOCOL_TYPE, Assignment, Subscription

CONNECT, STREAMS, KSQLDB, SCHEMA_REGISTRY = "connect", "streams", "ksqldb", "schema-registry"
# QueryApplicationId of ksqlDB: prefix, service id (default_), query_ or transient_, query id.
_KSQL = re.compile(r"_confluent-ksql-(?P<service>.*?)(?:query|transient)_(?P<query>.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Application:
    """The application of a group: `kind` is connect, streams, ksqldb or schema-registry.

    The ids are those of a ksqlDB query, whose group is one of Streams; None elsewhere.
    """

    kind: Annotated[str, ("connect", "streams", "ksqldb", "schema-registry")]
    service_id: str | None = None
    query_id: Annotated[str | None, "of a ksqlDB query"] = None


@dataclass(frozen=True, slots=True)
class Embedded:
    """A member's decoded bytes; one of the three is set unless nothing could be read."""

    connect: ConnectWorker | None = None
    streams: StreamsThread | None = None
    schema_registry: RegistryInstance | None = None
    undecoded: tuple[Undecoded, ...] = ()

    @property
    def leader(self) -> str | None:
        """The member id of the leader, if an assignment names it."""
        if self.connect is not None and self.connect.assignment is not None:
            return self.connect.assignment.leader
        if self.schema_registry is not None and self.schema_registry.election is not None:
            return self.schema_registry.election.leader
        return None


def application_of(group_id: str, protocol_type: str, assignor: str | None) -> Application | None:
    """Return the application, by protocol type, assignor and, for ksqlDB, group id; None for plain
    consumers, for unknown protocol types, and while a group's assignor is unknown."""
    if protocol_type == connect.PROTOCOL_TYPE:
        return Application(CONNECT)
    if protocol_type == schema_registry.PROTOCOL_TYPE:
        return Application(SCHEMA_REGISTRY)
    if protocol_type != PROTOCOL_TYPE or assignor != streams.ASSIGNOR:
        return None
    if query := _KSQL.fullmatch(group_id):
        return Application(KSQLDB, query["service"], query["query"])
    return Application(STREAMS)


def embedded(application: Application | None, client_id: str, metadata: bytes, assignment: bytes) -> Embedded:
    """Return what such a group's member joined with and was assigned; either may be empty."""
    if application is None:
        return Embedded()
    if application.kind == CONNECT:
        worker, undecoded = connect.worker(metadata, assignment)
        return Embedded(connect=worker, undecoded=undecoded)
    if application.kind == SCHEMA_REGISTRY:
        instance, undecoded = schema_registry.instance(metadata, assignment)
        return Embedded(schema_registry=instance, undecoded=undecoded)
    # The part of the consumer protocol for Streams' assignor.
    subscribed = assigned = None
    unread = []
    try:
        subscribed = Subscription.decode(metadata).user_data if metadata else None
    except DecodeError as error:
        unread.append(Undecoded(METADATA, len(metadata), None, error.message))
    try:
        assigned = Assignment.decode(assignment).user_data if assignment else None
    except DecodeError as error:
        unread.append(Undecoded(ASSIGNMENT, len(assignment), None, error.message))
    thread, undecoded = streams.thread(client_id, subscribed, assigned)
    return Embedded(streams=thread, undecoded=(*unread, *undecoded))
