"""The error codes an operator of consumer groups meets (behaviour of Kafka 4.4)."""

from kgroup.cli.explanations.entry import Entry, EntryKind
from kgroup.errors import ErrorCode

DESCRIBE = "kgroup describe GROUP"
REMOVE = "kgroup remove-members GROUP --instance-id ID"

ALIASES = {
    ErrorCode.CORRUPT_MESSAGE: ("CorruptRecordException",),
    ErrorCode.REQUEST_TIMED_OUT: ("TimeoutException",),
    ErrorCode.MESSAGE_TOO_LARGE: ("RecordTooLargeException",),
    ErrorCode.STALE_CONTROLLER_EPOCH: ("ControllerMovedException",),
    ErrorCode.RECORD_LIST_TOO_LARGE: ("RecordBatchTooLargeException",),
    ErrorCode.TOPIC_ALREADY_EXISTS: ("TopicExistsException",),
    ErrorCode.INVALID_CONFIG: ("InvalidConfigurationException",),
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: ("OutOfOrderSequenceException",),
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER: ("DuplicateSequenceException",),
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: ("InvalidPidMappingException",),
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: ("InvalidTxnTimeoutException",),
    ErrorCode.INVALID_PRODUCER_EPOCH: ("ProducerFencedException",),
    ErrorCode.NON_EMPTY_GROUP: ("GroupNotEmptyException",),
    ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE: ("PrincipalDeserializationException",),
    ErrorCode.COORDINATOR_NOT_AVAILABLE: (
        "GROUP_COORDINATOR_NOT_AVAILABLE",
        "ConsumerCoordinatorNotAvailable",
    ),
    ErrorCode.NOT_COORDINATOR: ("NOT_COORDINATOR_FOR_GROUP", "NotCoordinatorForConsumer"),
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ("GROUP_LOAD_IN_PROGRESS", "OffsetsLoadInProgress"),
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ("NOT_LEADER_FOR_PARTITION",),
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ("UNKNOWN_TOPIC_OR_PART",),
}
"""Names that clients, or releases before, give errors named otherwise (Errors.java of Kafka 4.3.1)."""


def _error(
    code: ErrorCode,
    meaning: str,
    *,
    classic: str | None = None,
    consumer: str | None = None,
    cause: str | None = None,
    next: tuple[str, ...] = (DESCRIBE,),
) -> Entry:
    return Entry(
        name=code.name,
        kind=EntryKind.ERROR,
        meaning=meaning,
        classic=classic,
        consumer=consumer,
        cause=cause,
        next=next,
        code=int(code),
        retriable=code.retriable,
        aliases=ALIASES.get(code, ()),
    )


ERRORS: tuple[Entry, ...] = (
    _error(
        ErrorCode.FENCED_INSTANCE_ID,
        "The group.instance.id is in use in the group, but under another member id.",
        classic="The process that gets it was replaced: another one joined with the same instance id and "
        "took over its partitions. Fatal for the client that gets it; it must not retry.",
        consumer="A request named an instance id together with a member id that does not hold it. A second "
        "process that joins with a taken id gets UNRELEASED_INSTANCE_ID instead.",
        cause="Two processes share one group.instance.id: a rolling restart that starts the new pod before "
        "the old one is gone, a copied configuration, or a paused process that resumed. Or a librdkafka "
        "member is alone: it had forgotten its member id while its brokers were away for longer than its "
        "session, and sent the commits that had waited (OffsetCommit failed). Start it again.",
        next=("kgroup describe GROUP --by instance",),
    ),
    _error(
        ErrorCode.UNRELEASED_INSTANCE_ID,
        "The group.instance.id still belongs to a live member, so a newcomer may not take it.",
        consumer="The newcomer is refused and the existing member keeps its partitions: the opposite of the "
        "classic protocol, where the newcomer wins. It may join once the holder leaves (epoch -2) or its "
        "session times out.",
        cause="A pod was killed without closing its consumer and came back before the session timeout, or "
        "two processes share one instance id.",
        next=("kgroup describe GROUP --by instance", REMOVE),
    ),
    _error(
        ErrorCode.STALE_MEMBER_EPOCH,
        "An offset commit or fetch carries a member epoch that is not the member's current one.",
        classic="Does not occur; the counterpart is ILLEGAL_GENERATION.",
        consumer="A commit with an older epoch is accepted for partitions the member has owned since that "
        "epoch or earlier (KIP-1251) and refused for the others; one refused partition rejects the whole "
        "request. A newer epoch is always refused. A fetch needs exactly the current epoch.",
        cause="The commit crossed paths with a rebalance. Harmless if the client retries with its new "
        "epoch; if it persists, a process that no longer sends heartbeats is still committing.",
    ),
    _error(
        ErrorCode.FENCED_MEMBER_EPOCH,
        "A heartbeat carries a member epoch the coordinator does not accept.",
        classic="Does not occur; the counterpart is ILLEGAL_GENERATION.",
        consumer="The client gives up its partitions and rejoins with epoch 0. Until then it stays in "
        "the group.",
        cause="A process that was paused sends an old epoch, or the coordinator restarted with an older log.",
    ),
    _error(
        ErrorCode.UNKNOWN_MEMBER_ID,
        "The group exists, but no member has this member id.",
        classic="The client joins again with an empty member id, as a new member.",
        consumer="The client joins again with epoch 0.",
        cause="The member was removed: its session timed out, it did not rejoin within the rebalance "
        "timeout, or it was removed. In answer to a removal: the instance id is not in the group.",
        next=("kgroup describe GROUP --section members",),
    ),
    _error(
        ErrorCode.ILLEGAL_GENERATION,
        "The request carries a generation that is not the group's current one.",
        classic="The client joins again. A commit refused with it is lost: the partition's new owner reads "
        "those records again.",
        consumer="Only for members that still use the classic protocol, and for transactional commits with "
        "a stale epoch.",
        cause="The rebalance ended without this member: processing took longer than max.poll.interval.ms.",
    ),
    _error(
        ErrorCode.REBALANCE_IN_PROGRESS,
        "The group is rebalancing and is waiting for members to join again.",
        classic="Normal for a moment: the member rejoins with its next poll. If it lasts, one member does "
        "not rejoin, and all wait for its rebalance timeout.",
        consumer="Only for members that still use the classic protocol: they have a new assignment to fetch.",
        cause="A member joined, left or timed out, or a subscription changed.",
        next=("kgroup describe GROUP --section members",),
    ),
    _error(
        ErrorCode.LEADER_NOT_AVAILABLE,
        "The partition has no leader at the moment, so nobody can read or write it.",
        cause="A leader is being elected or the topic was just created: it passes. If it lasts, the "
        "brokers of all replicas in sync are down, or have lost the log directory.",
        next=("kgroup cluster status", "kgroup describe GROUP --section offsets"),
    ),
    _error(
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        "The broker asked is not, or no longer, the leader of the partition.",
        cause="The leader moved; the client finds the new one. It matters only if it lasts.",
        next=("kgroup cluster status",),
    ),
    _error(
        ErrorCode.REQUEST_TIMED_OUT,
        "The broker, or the client itself, gave up waiting. Whether the request took effect is unknown.",
        cause="An overloaded broker, replicas that do not follow, or a network that drops connections.",
        next=("kgroup cluster status", "kgroup coordinator GROUP"),
    ),
    _error(
        ErrorCode.SASL_AUTHENTICATION_FAILED,
        "The broker does not accept the client's login. Clients do not retry it.",
        cause="A wrong or rotated password, a user that the broker does not know under this SASL "
        "mechanism, or an expired token or ticket.",
        next=("kgroup config show", "kgroup cluster user list"),
    ),
    _error(
        ErrorCode.NOT_COORDINATOR,
        "This broker is not the coordinator of the group.",
        classic="The client looks up the coordinator again.",
        consumer="The client looks up the coordinator again.",
        cause="The group's __consumer_offsets partition has moved to another broker, or failed to load.",
        next=("kgroup coordinator GROUP",),
    ),
    _error(
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        "The group has no coordinator at the moment.",
        classic="The client retries.",
        consumer="The client retries.",
        cause="The __consumer_offsets partition has no leader, or has not been created yet, or cannot be.",
        next=("kgroup cluster topics __consumer_offsets --internal", "kgroup coordinator GROUP"),
    ),
    _error(
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        "The coordinator is still reading the group's partition of __consumer_offsets.",
        classic="The client retries; heartbeats are answered as if all were well.",
        consumer="The client retries.",
        cause="A broker restart or a leader change. If it takes minutes, the partition is large because the "
        "log cleaner is not keeping up.",
        next=("kgroup coordinator GROUP",),
    ),
    _error(
        ErrorCode.GROUP_ID_NOT_FOUND,
        "No such group.",
        classic="The group does not exist, or has expired: it was empty and the last of its offsets expired.",
        consumer="Also what the first consumer-protocol member gets when its classic group cannot be "
        "upgraded: the migration policy forbids it, or an assignment carries user data of a custom or "
        "cooperative-sticky assignor.",
        cause="A misspelt id or the wrong cluster; for a member that joins, a refused upgrade.",
        next=("kgroup list", DESCRIBE),
    ),
    _error(
        ErrorCode.NON_EMPTY_GROUP,
        "The group has members, and this operation needs an empty group.",
        classic="All members must be gone before a group can be deleted or its offsets reset.",
        consumer="The same. A static member that left (epoch -2) still counts until its session times out.",
        cause="A consumer is still running, or a static member has not expired yet.",
        next=("kgroup describe GROUP --section members", "kgroup remove-members GROUP --all"),
    ),
    _error(
        ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        "Offsets of a topic cannot be deleted while members subscribe to it.",
        classic="Every topic counts as subscribed while a member's subscription cannot be read.",
        consumer="Topics matched by a member's regular expression count too.",
        cause="A consumer of the topic is still running.",
        next=("kgroup describe GROUP --section members",),
    ),
    _error(
        ErrorCode.GROUP_DELETION_FAILED,
        "The broker could not delete the group; the answer's message says why (Kafka 4.4).",
        cause="Something that belongs to the group could not be deleted with it, such as the topology "
        "description of a streams group.",
    ),
    _error(
        ErrorCode.STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED,
        "The broker could not keep the description that a streams member sent of its topology (Kafka 4.4).",
        cause="The broker's plugin for descriptions failed; members keep reading without it.",
        next=("kgroup describe GROUP", "read the broker's log"),
    ),
    _error(
        ErrorCode.CONTROLLER_ID_NOT_REGISTERED,
        "The controller that a request wants to unregister is not registered (Kafka 4.4).",
        cause="It concerns the quorum of controllers, and no group: Kafka's own tools send that request.",
        next=("kafka-metadata-quorum.sh --bootstrap-controller HOST:PORT describe --status",),
    ),
    _error(
        ErrorCode.MEMBER_ID_REQUIRED,
        "The coordinator has handed out a member id; join again with it.",
        classic="Normal: the first answer to every dynamic member (KIP-394). Static members never get it.",
        consumer="Only for members that still use the classic protocol.",
        cause="Part of joining. If it keeps appearing in the logs, the client never gets to its second join.",
    ),
    _error(
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        "The member has no protocol (assignor) in common with the others, or the group is of another type.",
        classic="All members must have at least one partition.assignment.strategy in common.",
        consumer="A classic member wants to join while the migration policy does not allow a mixed group, "
        "or shares no assignor with the classic members in it.",
        cause="The assignor was changed in one step. Do two rolling restarts: first with both, then without "
        "the old one.",
        next=("kgroup describe GROUP --section members",),
    ),
    _error(
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        "The group has as many members as the broker allows.",
        classic="Limit: group.max.size.",
        consumer="Limit: group.consumer.max.size. A static member that returns under a new member id counts "
        "as one more, so a full group can refuse its own restarts.",
        cause="More consumers than planned, or dead ones that have not timed out.",
        next=("kgroup describe GROUP --by member",),
    ),
    _error(
        ErrorCode.INVALID_REGULAR_EXPRESSION,
        "The subscription's regular expression is not valid RE2.",
        consumer="The broker evaluates it, with RE2: no look-around and no back-references, and the whole "
        "topic name must match.",
        cause="A Java pattern that RE2 does not support, carried over from the classic protocol, where the "
        "client evaluates it.",
        next=(),
    ),
    _error(
        ErrorCode.UNSUPPORTED_ASSIGNOR,
        "The coordinator has no server-side assignor of that name.",
        consumer="group.remote.assignor names it; brokers offer uniform and range, and what "
        "group.consumer.assignors adds.",
        cause="The name of a client-side strategy (cooperative-sticky, roundrobin) used as a remote "
        "assignor.",
        next=(),
    ),
    _error(
        ErrorCode.UNKNOWN_SUBSCRIPTION_ID,
        "The client telemetry subscription id is out of date; the client asks for the current one.",
        cause="The client metrics subscription was changed on the broker. No effect on the group.",
        next=(),
    ),
    _error(
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        "The principal may not use this transactional id.",
        classic="Transactional offset commits need WRITE on the transactional id.",
        consumer="Transactional offset commits need WRITE on the transactional id.",
        cause="A missing ACL on the TransactionalId resource.",
        next=(),
    ),
    _error(
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
        "No transaction state is kept for this transactional id.",
        cause="The id has expired (transactional.id.expiration.ms), or was never used on this cluster.",
        next=(),
    ),
    _error(
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        "The offset is part of a transaction that is still open; a read-committed reader must wait.",
        classic="The client retries until the transaction commits or aborts.",
        consumer="The client retries until the transaction commits or aborts.",
        cause="A transaction in flight; for long: a hanging one.",
    ),
    _error(
        ErrorCode.OFFSET_OUT_OF_RANGE,
        "The committed offset lies outside the partition's log.",
        classic="The consumer follows auto.offset.reset.",
        consumer="The consumer follows auto.offset.reset.",
        cause="Retention removed the records before they were read, or the topic was recreated.",
        next=("kgroup describe GROUP --section offsets",),
    ),
    _error(
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
        "The metadata string of a commit is longer than offset.metadata.max.bytes.",
        cause="A client keeps state in the metadata of its commits. Only that partition is refused.",
        next=("kgroup describe GROUP --section offsets -o json",),
    ),
    _error(
        ErrorCode.INVALID_SESSION_TIMEOUT,
        "The session timeout is outside the broker's limits.",
        classic="Limits: group.min.session.timeout.ms to group.max.session.timeout.ms, both inclusive.",
        consumer="Does not occur: the session timeout is a group setting (consumer.session.timeout.ms).",
        cause="A session.timeout.ms above 30 minutes or below 6 seconds, with default limits.",
        next=(),
    ),
    _error(
        ErrorCode.INVALID_GROUP_ID,
        "The group id is empty or not allowed here.",
        cause="group.id is not set.",
        next=(),
    ),
    _error(
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        "The principal may not do this with the group.",
        classic="Members need READ, describing DESCRIBE, deleting DELETE on the Group resource.",
        consumer="The same.",
        cause="A missing ACL on the Group resource.",
        next=(),
    ),
    _error(
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        "The principal may not do this with the topic.",
        classic="Members and commits need READ on the topic.",
        consumer="Subscribing by name needs DESCRIBE; describing a group needs DESCRIBE on every topic in "
        "it, or the whole group is hidden.",
        cause="A missing ACL on the Topic resource.",
        next=(),
    ),
    _error(
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "The topic or partition does not exist on this broker.",
        cause="A deleted or misspelt topic, or metadata that is slightly out of date.",
        next=("kgroup describe GROUP --section offsets",),
    ),
    _error(
        ErrorCode.UNSUPPORTED_VERSION,
        "The broker does not serve this request, or not in this version.",
        classic="A static member needs a broker of 2.3 or later.",
        consumer="The consumer protocol is off on this broker: it needs Kafka 4.0 and group.version=1.",
        cause="An old broker or a disabled feature.",
        next=(),
    ),
    _error(
        ErrorCode.INVALID_REQUEST,
        "The broker found the request malformed; its message says which field.",
        consumer="Among others: an empty member id, an epoch below -2, -2 without an instance id.",
        cause="A client bug, or a hand-made request.",
        next=(),
    ),
    _error(
        ErrorCode.CONCURRENT_TRANSACTIONS,
        "The transactional id still has a transaction that is being completed.",
        cause="The next transaction began right after the last one. The client retries.",
        next=(),
    ),
    _error(
        ErrorCode.INVALID_PRODUCER_EPOCH,
        "Another producer with the same transactional id has taken over.",
        cause="Two instances share a transactional id. The older one must stop.",
        next=(),
    ),
)


HISTORY = ("kgroup doctor GROUP", "kgroup blame GROUP")


def _thrown(name: str, meaning: str, cause: str, *next: str) -> Entry:
    return Entry(name, EntryKind.ERROR, meaning, cause=cause, next=next)


THROWN: tuple[Entry, ...] = (
    _thrown(
        "CommitFailedException",
        "The consumer is no longer a member, so its offsets were not stored; others may read these records "
        "again.",
        "The group rebalanced without it: poll() was called later than max.poll.interval.ms allows, its "
        "session expired, or it was removed. The broker had answered UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION "
        "or STALE_MEMBER_EPOCH.",
        *HISTORY,
    ),
    _thrown(
        "RetriableCommitFailedException",
        "An asynchronous commit was not stored; a later commit covers it.",
        "The coordinator moved, was loading, or did not answer. It matters only if the last commit before a "
        "stop fails so.",
        "kgroup coordinator GROUP",
        "kgroup lag GROUP",
    ),
    _thrown(
        "NoOffsetForPartitionException",
        "A partition has no committed offset, and auto.offset.reset is none.",
        "The group is new, the partition was added, or its offsets expired (offsets.retention.minutes).",
        "kgroup blame GROUP",
        "kgroup reset-offsets GROUP --topic TOPIC --to-earliest",
    ),
    _thrown(
        "LogTruncationException",
        "The log ends before the consumer's position: records that it has read are no longer in it.",
        "An unclean leader election, or a topic that was created again under its name.",
        "kgroup doctor GROUP",
        "kgroup describe GROUP --section offsets",
    ),
    _thrown(
        "RecordDeserializationException",
        "The consumer cannot decode the record at the offset that the message names, and reads no further.",
        "A poison record: each restart meets it again. Skip it by a reset to the next offset, with the group "
        "stopped.",
        "kgroup lag GROUP --time",
        "kgroup reset-offsets GROUP --topic TOPIC:PARTITION --to-offset N",
    ),
    _thrown(
        "WakeupException",
        "Another thread called wakeup() on the consumer: it is to stop.",
        "An ordinary shutdown. Nothing is wrong unless the process was not meant to stop.",
    ),
    _thrown(
        "DisconnectException",
        "The connection to a broker closed while a request waited for its answer; the client repeats it.",
        "A broker that restarted, a network that dropped an idle connection, or a listener that expects TLS "
        "or SASL.",
        "kgroup cluster status",
    ),
)
