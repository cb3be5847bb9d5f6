"""A right as in Kafka's ACLs: an operation on a resource, and the right that a refusal reports missing."""

from dataclasses import dataclass

from kgroup.errors import ErrorCode

READ, WRITE, CREATE, DELETE, ALTER = "Read", "Write", "Create", "Delete", "Alter"
DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS = "Describe", "DescribeConfigs", "AlterConfigs"
OPERATION_CODES = {
    READ: 3,
    WRITE: 4,
    CREATE: 5,
    DELETE: 6,
    ALTER: 7,
    DESCRIBE: 8,
    DESCRIBE_CONFIGS: 10,
    ALTER_CONFIGS: 11,
}
"""Kafka's AclOperation by its name in kafka-acls; also the bits in which brokers report what is allowed."""
GROUP, TOPIC, CLUSTER, TRANSACTIONAL_ID = "Group", "Topic", "Cluster", "TransactionalId"
EVERY = "*"
"""The name of a resource in an ACL for every resource of the kind."""
_RESOURCE_OF = {
    ErrorCode.GROUP_AUTHORIZATION_FAILED: GROUP,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: TOPIC,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: CLUSTER,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: TRANSACTIONAL_ID,
}
REFUSALS = frozenset(code.name for code in _RESOURCE_OF)
"""The names of the codes with which a broker reports a missing right."""


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """An operation on a resource by its name, EVERY for all of its kind; the cluster has no name."""

    operation: str
    resource: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.operation} on {self.resource} {self.name}".rstrip()


def on_group(operation: str, group_id: str) -> Right:
    return Right(operation, GROUP, group_id)


def on_topic(operation: str, topic: str) -> Right:
    return Right(operation, TOPIC, topic)


def on_cluster(operation: str) -> Right:
    return Right(operation, CLUSTER)


def lacking(code: int, *needed: Right) -> str | None:
    """Return the missing right in a refusal with `code` of a request with these; None for other codes."""
    resource = next((name for known, name in _RESOURCE_OF.items() if known == code), None)
    if resource is None:
        return None
    missing = [str(right) for right in needed if right.resource == resource]
    return f"this principal lacks {' or '.join(missing) or f'a right on the {resource.lower()}'}"
