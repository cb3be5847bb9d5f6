"""Groups of Kafka Connect, Kafka Streams and Schema Registry, decoded from their members' own bytes."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kgroup.admin.models import GroupDescription, ItemError, Member
from kgroup.admin.read.members import metadata_of
from kgroup.protocol.embedded.member import (
    CONNECT,
    KSQLDB,
    SCHEMA_REGISTRY,
    STREAMS,
    Application,
    Embedded,
    application_of,
    embedded,
)

if TYPE_CHECKING:
    from kgroup.protocol.messages.describe_groups import DescribedGroupMember

TIMESTAMP_BYTES = 9
STREAMS_VERSIONS = (1, 2)
NAMES = {
    CONNECT: "Kafka Connect",
    STREAMS: "Kafka Streams",
    KSQLDB: "ksqlDB (Kafka Streams)",
    SCHEMA_REGISTRY: "Schema Registry",
}
NO_OFFSETS = {
    CONNECT: "Connect workers commit nothing in the group they share: a sink connector commits in a group of "
    "its own, connect-<connector> unless configured otherwise, and source connectors keep their place in the "
    "cluster's offset topic",
    SCHEMA_REGISTRY: "instances of Schema Registry elect their leader in this group and commit nothing in it",
}
"""Why a group of this kind has no committed offsets."""
NOT_DECODED = "NOT_DECODED"
_HINT = "-o json has the bytes; a newer kgroup may know them"


def with_application(
    group: GroupDescription, members: Sequence[DescribedGroupMember], reports_instances: bool
) -> GroupDescription:
    """Return the group with its application, and its members with their decoded bytes."""
    application = application_of(group.group_id, group.protocol_type, group.assignor)
    wire = {member.member_id: member for member in members}

    def read(member: Member) -> Member:
        described = wire[member.member_id]
        metadata = metadata_of(described, reports_instances)
        return with_content(
            member, embedded(application, described.client_id, metadata, bytes(described.member_assignment))
        )

    return of_application(replace(group, members=tuple(map(read, group.known_members))), application)


def of_application(group: GroupDescription, application: Application | None) -> GroupDescription:
    """Return the group as one of this application, with why such a group has no committed offsets.

    Its errors name the members whose bytes could not be understood.
    """
    kind = application.kind if application else ""
    errors = tuple(
        ItemError("members", NOT_DECODED, f"{group.group_id}: {member.name}: {part.text}", _HINT)
        for member in group.known_members
        for part in member.undecoded
    )
    return replace(
        group, application=application, no_offsets=NO_OFFSETS.get(kind), errors=(*group.errors, *errors)
    )


def with_content(member: Member, content: Embedded) -> Member:
    """Return the member with its decoded bytes; `is_leader` too, where they show it."""
    return replace(
        member,
        is_leader=member.is_leader if content.leader is None else member.member_id == content.leader,
        connect=content.connect,
        streams=content.streams,
        schema_registry=content.schema_registry,
        undecoded=content.undecoded,
    )


def is_streams_metadata(text: str) -> bool:
    """Return whether a commit's metadata is Streams' own: base64 of a version and a time in ms or -1."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    if len(data) < TIMESTAMP_BYTES or data[0] not in STREAMS_VERSIONS:
        return False
    if data[0] == STREAMS_VERSIONS[0] and len(data) != TIMESTAMP_BYTES:
        return False
    # Any time a record may have: from -1, for none yet, to the year 2286.
    return -1 <= int.from_bytes(data[1:TIMESTAMP_BYTES], "big", signed=True) < 10**13
