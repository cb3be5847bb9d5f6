"""Errors that librdkafka's clients raise themselves; no broker sends them, and their numbers are negative."""

from kgroup.cli.explanations.entry import Entry, EntryKind

_DESCRIBE, _EXPLAIN = "kgroup describe GROUP", "kgroup explain"


def _local(code: int, name: str, meaning: str, cause: str | None = None, *next_: str) -> Entry:
    # Its code is omitted: -1 is Kafka's, and a number alone means that.
    said = f"{meaning} Raised by librdkafka ({code}), not sent by a broker."
    return Entry(
        f"_{name}", EntryKind.ERROR, said, cause=cause, next=next_, aliases=(str(code), f"ERR__{name}")
    )


# Those that an operator of groups meets, then the others by number.
LIBRDKAFKA: tuple[Entry, ...] = (
    _local(
        -147,
        "MAX_POLL_EXCEEDED",
        "The application did not poll for longer than max.poll.interval.ms, so its member left the group.",
        "Records take longer to process than the interval, or the application is blocked. Process less per "
        "poll, or raise max.poll.interval.ms.",
        "kgroup blame GROUP",
        "kgroup doctor GROUP",
    ),
    _local(
        -144,
        "FENCED",
        "Another client uses this instance id or transactional id, and this one was fenced.",
        "Two processes have the same group.instance.id, or a restarted pod overlaps with the old one.",
        "kgroup explain FENCED_INSTANCE_ID",
        _DESCRIBE,
    ),
    _local(
        -142,
        "ASSIGNMENT_LOST",
        "The member lost its partitions unrevoked; what it had not committed is read again.",
        "Its session expired, it was fenced, or it did not poll within max.poll.interval.ms.",
        "kgroup blame GROUP",
    ),
    _local(
        -140,
        "AUTO_OFFSET_RESET",
        "There is no committed offset, or none within the log, and auto.offset.reset is error.",
        "The offsets expired, the topic was recreated, or retention removed what was not yet read.",
        "kgroup lag GROUP",
        "kgroup doctor GROUP",
    ),
    _local(
        -139,
        "LOG_TRUNCATION",
        "The log was truncated below the consumer's position: records that it read do not exist any more.",
        "An unclean leader election, or a topic that was recreated.",
        "kgroup doctor GROUP",
    ),
    _local(
        -168,
        "NO_OFFSET",
        "There was nothing to commit: no offset was stored since the last commit.",
        "Harmless where nothing was read; otherwise offsets are not stored (enable.auto.offset.store=false).",
    ),
    _local(
        -180,
        "WAIT_COORD",
        "The client waits for the group's coordinator.",
        "The coordinator is down, moves, or loads its partition of __consumer_offsets.",
        "kgroup coordinator GROUP",
    ),
    _local(
        -187,
        "ALL_BROKERS_DOWN",
        "No broker is connected.",
        "bootstrap.servers or the advertised listeners cannot be reached, or TLS or SASL fails.",
        "kgroup cluster status -b HOST:PORT",
    ),
    _local(
        -195,
        "TRANSPORT",
        "A connection to a broker failed or was closed.",
        "A broker restarted, an idle connection was closed, or a listener expects TLS.",
        "kgroup cluster status -b HOST:PORT",
    ),
    _local(
        -193,
        "RESOLVE",
        "A broker's host name cannot be resolved.",
        "The advertised listener has a name that this machine does not know.",
    ),
    _local(
        -169,
        "AUTHENTICATION",
        "The broker rejected the client's login.",
        "A wrong password, mechanism or certificate.",
        "kgroup explain SASL_AUTHENTICATION_FAILED",
    ),
    _local(
        -181,
        "SSL",
        "The TLS handshake failed.",
        "The certificate is not trusted, has expired or another name, or the listener speaks no TLS.",
    ),
    _local(
        -185,
        "TIMED_OUT",
        "An operation took longer than its time limit.",
        None,
        "kgroup cluster status -b HOST:PORT",
    ),
    _local(
        -192, "MSG_TIMED_OUT", "A record was not delivered within message.timeout.ms (delivery.timeout.ms)."
    ),
    _local(-191, "PARTITION_EOF", "The consumer has read a partition to its end. Not a failure."),
    _local(-150, "FATAL", "The client cannot go on; its fatal error has the reason.", None, _EXPLAIN),
    _local(
        -172,
        "STATE",
        "The operation does not fit the client's state.",
        "Commonly a commit or pause for a partition that is not assigned any more, after a rebalance.",
        "kgroup blame GROUP",
    ),
    _local(-188, "UNKNOWN_TOPIC", "The topic does not exist on the cluster.", None, "kgroup cluster topics"),
    _local(
        -190,
        "UNKNOWN_PARTITION",
        "The partition does not exist on the cluster.",
        None,
        "kgroup cluster topics",
    ),
    _local(-179, "UNKNOWN_GROUP", "The group does not exist.", None, "kgroup list"),
    _local(-175, "ASSIGN_PARTITIONS", "Partitions were assigned. An event of a rebalance, not a failure."),
    _local(-174, "REVOKE_PARTITIONS", "Partitions are revoked. An event of a rebalance, not a failure."),
    _local(-186, "INVALID_ARG", "A setting or an argument is invalid."),
    _local(-184, "QUEUE_FULL", "The producer's queue is full: records come faster than brokers take them."),
    _local(-165, "UNSUPPORTED_FEATURE", "The brokers are too old for this."),
    *(
        _local(code, name, meaning)
        for code, name, meaning in (
            (-199, "BAD_MSG", "A message was malformed."),
            (-198, "BAD_COMPRESSION", "Compressed data is invalid."),
            (-197, "DESTROY", "The client is being closed."),
            (-196, "FAIL", "The communication with a broker failed."),
            (-194, "CRIT_SYS_RESOURCE", "A resource of the system, such as a thread, is not available."),
            (-189, "FS", "A file cannot be read or written."),
            (-183, "ISR_INSUFF", "Too few replicas are in sync."),
            (-182, "NODE_UPDATE", "The addresses of brokers changed. Internal."),
            (-178, "IN_PROGRESS", "The operation is still in progress."),
            (-177, "PREV_IN_PROGRESS", "A previous operation is still in progress."),
            (-176, "EXISTING_SUBSCRIPTION", "This would interfere with a subscription."),
            (-173, "CONFLICT", "Two ways of use conflict."),
            (-171, "UNKNOWN_PROTOCOL", "The protocol is unknown."),
            (-170, "NOT_IMPLEMENTED", "This is not implemented."),
            (-167, "OUTDATED", "The operation was overtaken by a newer one, such as a rebalance."),
            (-166, "TIMED_OUT_QUEUE", "A request timed out before it was sent."),
            (-164, "WAIT_CACHE", "The client waits for metadata."),
            (-163, "INTR", "The operation was interrupted."),
            (-162, "KEY_SERIALIZATION", "A key cannot be serialized."),
            (-161, "VALUE_SERIALIZATION", "A value cannot be serialized."),
            (-160, "KEY_DESERIALIZATION", "A key cannot be deserialized."),
            (-159, "VALUE_DESERIALIZATION", "A value cannot be deserialized."),
            (-158, "PARTIAL", "A response was incomplete."),
            (-157, "READ_ONLY", "The object cannot be changed."),
            (-156, "NOENT", "There is no such entry."),
            (-155, "UNDERFLOW", "A message ended too early."),
            (-154, "INVALID_TYPE", "A type is invalid."),
            (-153, "RETRY", "The operation is to be retried."),
            (-152, "PURGE_QUEUE", "A record was purged from the queue."),
            (-151, "PURGE_INFLIGHT", "A record was purged in flight; whether it was written is unknown."),
            (-149, "INCONSISTENT", "The state of the client is inconsistent."),
            (-148, "GAPLESS_GUARANTEE", "Going on would leave a gap in the order of records."),
            (-146, "UNKNOWN_BROKER", "There is no broker with this id."),
            (-145, "NOT_CONFIGURED", "The client is not configured for this."),
            (-143, "APPLICATION", "The application raised this error."),
            (-141, "NOOP", "There was nothing to do."),
            (-138, "INVALID_DIFFERENT_RECORD", "Another record of the same batch was invalid."),
            (-137, "DESTROY_BROKER", "The connection of a broker is being closed."),
        )
    ),
)
