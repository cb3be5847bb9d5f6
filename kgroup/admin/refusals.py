"""What was refused or not seen, in words, with what to do next."""

from collections.abc import Sequence
from typing import Protocol, TypeGuard

from kgroup.admin.models import ItemError
from kgroup.domain import SHARE_STATE_TOPIC, TopicPartition
from kgroup.errors import BrokerRefused, ErrorCode, KgroupError, Unreachable
from kgroup.security.rights import DESCRIBE, EVERY, Right, lacking, on_group, on_topic

Needs = Sequence[Right]

_ASK_FOR_IT = "kgroup doctor --rights shows what each command needs, as lines of kafka-acls"
HINTS = {
    ErrorCode.GROUP_ID_NOT_FOUND: "kgroup list shows which groups there are",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: _ASK_FOR_IT,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: _ASK_FOR_IT,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: _ASK_FOR_IT,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: _ASK_FOR_IT,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: (
        "its partition of __consumer_offsets has no leader now, or brokers cannot create that topic (fewer "
        "than offsets.topic.replication.factor): kgroup cluster topics __consumer_offsets --internal"
    ),
    ErrorCode.LEADER_NOT_AVAILABLE: (
        "kgroup cluster status shows which of those brokers are up: one that is up has lost the log "
        "directory, and its log says why"
    ),
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "the coordinator is still reading its log; try again",
    ErrorCode.NOT_COORDINATOR: "the group is moving to another broker; try again",
    ErrorCode.NON_EMPTY_GROUP: "the group still has members: stop them or kgroup remove-members GROUP --all",
    ErrorCode.GROUP_DELETION_FAILED: "the broker's log says more; its plugin keeps a part of the group",
    ErrorCode.FENCED_INSTANCE_ID: "the instance id is held by another member now: describe the group again",
    ErrorCode.UNKNOWN_MEMBER_ID: "it is not in the group (any more)",
    ErrorCode.UNSUPPORTED_VERSION: "the broker is too old for this",
    ErrorCode.SECURITY_DISABLED: "brokers have access rules once authorizer.class.name is set",
}
_MEANINGS = {
    ErrorCode.GROUP_ID_NOT_FOUND: "the group does not exist",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "the topic or partition does not exist",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "no coordinator is available",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "the coordinator is loading",
    ErrorCode.NOT_COORDINATOR: "this broker is not the coordinator",
    ErrorCode.NON_EMPTY_GROUP: "the group is not empty",
    ErrorCode.UNKNOWN_MEMBER_ID: "no such member",
    ErrorCode.FENCED_INSTANCE_ID: "another member holds this instance id",
    ErrorCode.INVALID_GROUP_ID: "the group id is not valid",
    ErrorCode.TOPIC_ALREADY_EXISTS: "the topic exists already",
}


def refused(code: int, what: str, detail: str | None = None, needs: Needs = ()) -> BrokerRefused:
    """Return the exception for `code`, "what: CODE: meaning", the broker's own words preferred.

    Where a right is missing it names the one of the request's `needs`.
    """
    known = ErrorCode(code) if code in _CODES else None
    missing = lacking(code, *needs)
    if missing and detail and any(right.name == EVERY for right in needs):
        # The broker does not say which right is missing: its own words may.
        missing = f"{missing} ({detail})"
    meaning = missing or detail or (_MEANINGS.get(known) if known is not None else None)
    name = ErrorCode.name_of(code)
    text = f"{what}: {name}" + (f": {meaning}" if meaning else "")
    return BrokerRefused(code, text, detail=detail, hint=HINTS.get(known) if known is not None else None)


def naming(partition: TopicPartition, message: str) -> str:
    """Return a message about a partition that names it: a refusal of its leader does already."""
    return message if message.startswith(f"{partition}: ") else f"{partition}: {message}"


_CODES = frozenset(int(code) for code in ErrorCode)


def check(code: int, what: str, detail: str | None = None, needs: Needs = ()) -> None:
    """Raise `refused` unless `code` is NONE."""
    if code != ErrorCode.NONE:
        raise refused(code, what, detail, needs)


class Described(Protocol):
    """A group in the answer to a describe request of any type."""

    @property
    def group_id(self) -> str: ...

    @property
    def error_code(self) -> int: ...

    @property
    def error_message(self) -> str | None: ...


def undescribed(group: Described) -> BrokerRefused | None:
    """Return why a broker does not describe a group, None if it does; a hidden topic hides the group."""
    if not group.error_code:
        return None
    needs = (on_group(DESCRIBE, group.group_id), on_topic(DESCRIBE, EVERY))
    return refused(group.error_code, f"group {group.group_id}", group.error_message, needs)


def hint_of(name: str) -> str | None:
    """Return what to do about a code by name; None where there is nothing to say."""
    known = ErrorCode.__members__.get(name)
    return None if known is None else HINTS.get(known)


def code_name(error: KgroupError) -> str:
    """Return the stable name of a failure: Kafka's error name, UNREACHABLE, or the class in capitals."""
    if isinstance(error, BrokerRefused):
        return error.name
    return "UNREACHABLE" if isinstance(error, Unreachable) else type(error).__name__.upper()


def item_error(item: str, error: KgroupError) -> ItemError:
    """Return why one item of a larger answer is missing, from the failure to read it."""
    return ItemError(item, code_name(error), error.message, error.hint)


def is_gone(answer: object) -> TypeGuard[BrokerRefused]:
    """Return whether the cluster has reported that the topic or partition does not exist."""
    return isinstance(answer, BrokerRefused) and answer.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def is_absent(answer: object) -> TypeGuard[BrokerRefused]:
    """Return whether the cluster has reported that the group does not exist."""
    return isinstance(answer, BrokerRefused) and answer.code == ErrorCode.GROUP_ID_NOT_FOUND


def not_found(group_id: str) -> BrokerRefused:
    """Return the error for a group that does not exist."""
    return refused(ErrorCode.GROUP_ID_NOT_FOUND, f"group {group_id}")


def unread_deliveries(group_id: str, item: str | None = None) -> ItemError:
    """Return the error for a share group whose deliveries are in a topic that was not read."""
    text = (
        f"{group_id}: start offsets and deliveries are in {SHARE_STATE_TOPIC}, of which there is no segment"
    )
    return ItemError(
        item or group_id, "NOT_SEEN", text, "name the folders of both topics; capture keeps both"
    )
