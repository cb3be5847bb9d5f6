"""Answers of the coordinator of the ZooKeeper era (`serve --legacy`); its numbers are not Kafka's."""

from kgroup.cli.explanations.entry import Entry, EntryKind

MEMBERS = "kgroup describe GROUP --zookeeper HOST:PORT"


def _refusal(number: int, name: str, meaning: str, cause: str, *aliases: str) -> Entry:
    # Its code is omitted: 5 to 10 are other errors in Kafka, and a number alone means those.
    said = f"{meaning} Code {number} of the coordinator of the ZooKeeper era; not a Kafka error."
    return Entry(
        name, EntryKind.ERROR, said, cause=cause, next=(MEMBERS,), aliases=(f"legacy {number}", *aliases)
    )


LEGACY: tuple[Entry, ...] = (
    _refusal(
        5,
        "DUPLICATE_CONSUMER_ID",
        "Another, live consumer of the group has this id.",
        "Two processes share a consumer id. One that comes back after a crash may register once its old "
        "connection is closed or its session has expired; until then it keeps trying.",
    ),
    _refusal(
        6,
        "SESSION_TIMEOUT_OUT_OF_RANGE",
        "The session timeout is not above min_session_ms, or it is above max_session_ms.",
        "The broker pings every third of it and waits two thirds of it for an answer, so it allows no "
        "shorter one than it can serve. Its limits are set with --legacy-set.",
    ),
    _refusal(
        7,
        "LEGACY_NOT_COORDINATOR",
        "This broker is not the elected coordinator, or not yet ready.",
        "An election is in progress, or the list of brokers is older than the last one. The consumer asks "
        "the next broker, with a pause after each round; if it lasts, ZooKeeper elects no broker.",
    ),
    _refusal(
        8,
        "BAD_SUBSCRIPTION",
        "The topics and their numbers of streams cannot be parsed.",
        'They must be a JSON object of topics and streams, such as {"orders":1}, or *N*REGEX for a whitelist '
        "and !N!REGEX for a blacklist, N at least 1.",
    ),
    _refusal(
        9,
        "BAD_REQUEST",
        "The name of the group or the consumer is invalid, or the reset word is neither smallest nor "
        "largest.",
        "Names become nodes in ZooKeeper: no '/', not empty, at most 249 bytes. A group may not be called "
        "coordinator, as that node is taken. Or a connection has registered twice.",
    ),
    _refusal(
        10,
        "CLOSING",
        "A consumer says that it is leaving: it has stopped, and its partitions are free at once.",
        "Only in an answer to a ping. It is sent once the positions reported before it are known to have "
        "arrived, so leaving takes up to two pings.",
    ),
    Entry(
        "ConsumerRebalanceFailedException",
        EntryKind.ERROR,
        "A group was stopped and started max_rebalance_retries times, and every attempt failed: the "
        "coordinator gives up until something changes. Likewise in the consumers of 0.8 to 1.1: one could "
        "not get its partitions in rebalance.max.retries attempts, and no longer reads anything.",
        cause="A member answers pings but not Stop or Start, or ZooKeeper refuses the writes. Consumers of "
        "0.8 got it when the old owner's session outlived all their attempts: retries times backoff must be "
        "longer than the session.",
        next=(MEMBERS,),
        aliases=("ConsumerRebalanceFailed",),
    ),
)
