"""Exceptions of Java consumers that are named after no error code: they stand in a client's log alone."""

from kgroup.cli.explanations.entry import Entry

HISTORY = ("kgroup doctor GROUP", "kgroup blame GROUP")


def _thrown(name: str, meaning: str, cause: str, *next: str) -> Entry:
    return Entry(name, "error", meaning, cause=cause, next=next)


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
