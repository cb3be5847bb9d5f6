"""Every finding of `describe` and `doctor`: what its code means, how much it matters, and what to do.

KG1xx members and assignment · KG2xx migration between protocols · KG3xx offsets and topics · KG4xx groups in
ZooKeeper. A code, once released, keeps its meaning.
"""

from dataclasses import dataclass

from kgroup.admin.statuses import ERROR, INFO, WARN, PartitionStatus


@dataclass(frozen=True, slots=True)
class Code:
    """A finding's fixed parts.

    `next` are commands to begin with, with GROUP, TOPIC and ID to fill in; each shows something, or a plan.
    `status` is the status of the partitions it is about, "" if it is about the group.
    """

    severity: str
    title: str
    remedy: str
    next: tuple[str, ...]
    status: str = ""


@dataclass(frozen=True, slots=True)
class Meaning:
    """The meaning of a partition's status, and what shows it."""

    means: str
    shown_by: str


STATUSES: dict[PartitionStatus, Meaning] = {
    PartitionStatus.GONE: Meaning("The topic or the partition does not exist.", "Metadata"),
    PartitionStatus.UNLEADERED: Meaning(
        "It has no leader, so nobody reads or writes it.", "Metadata, or a leader that does not answer"
    ),
    PartitionStatus.RECREATED: Meaning(
        "The committed offset is of another log: the topic was created again after the commit, or the commit "
        "was copied from another cluster.",
        "the topic id of the commit in `__consumer_offsets`; its leader epoch, in ListOffsets",
    ),
    PartitionStatus.BEYOND_END: Meaning(
        "The committed offset lies beyond the end of the log: records were lost, or a reset was wrong. Or a "
        "new leader cut the log before it, and it grew again: what is there now was never read.",
        "OffsetFetch, ListOffsets, OffsetForLeaderEpoch",
    ),
    PartitionStatus.PURGED: Meaning(
        "Records between the committed offset and the start of the log were deleted.",
        "OffsetFetch, ListOffsets",
    ),
    PartitionStatus.DAMAGED: Meaning(
        "The batch from which its reader goes on fails its checksum, as its leader sends it. Kafka's Java "
        "clients stop there, and librdkafka's with check.crcs.",
        "Fetch from the committed offset",
    ),
    PartitionStatus.IDLE: Meaning(
        "Nothing is left to read. A distance in offsets that remains holds markers of transactions, and "
        "aborted or "
        "compacted records.",
        "OffsetFetch, ListOffsets, Fetch from the committed offset",
    ),
    PartitionStatus.HELD_BACK: Meaning(
        "All that readers of committed records may read is read; a transaction is open. An error when it has "
        "been open for 15 s, and for twice the group's usual time between commits.",
        "Fetch, ListOffsets, the history, ListTransactions",
    ),
    PartitionStatus.MOVING: Meaning(
        "Its group rebalances, or it moves from one member to another.", "the group's description"
    ),
    PartitionStatus.UNSUBSCRIBED: Meaning(
        "No member subscribes to its topic. A warning when it was read until of late and records wait.",
        "the group's description, the history",
    ),
    PartitionStatus.UNREAD: Meaning(
        "Records wait, and no member owns it: an error if one subscribes to it, a warning if there are no "
        "members.",
        "the group's description, ListOffsets",
    ),
    PartitionStatus.ABSENT: Meaning(
        "Its owner is a static member that shut down and may come back.", "the group's description"
    ),
    PartitionStatus.NOT_BEGUN: Meaning(
        "Its owner has committed nothing yet. An error when a record came since and waited for longer than "
        "the member may take between two polls, or for 30 s while its owner commits others, or when "
        "three members in turn ended before its first commit.",
        "OffsetFetch, the history, ListOffsets by time",
    ),
    PartitionStatus.STALLED: Meaning(
        "Its owner leaves records that others would have read. A warning when they wait for 30 s, for ten "
        "times the group's usual delay, and for twice its usual time between commits. An error when other "
        "partitions were committed 15 s (and as long) later, when they wait for longer than the member "
        "may take between two polls, or when three members in turn ended before the same record, whether or "
        "not one is there now. A commit that repeats an offset counts as none. Of a share group: a warning "
        "when no record was finished for 30 s, for as long as its locks last, and for twice its usual time; "
        "an error after five minutes and as long as that, or when the same record came back three times and "
        "none was finished since. Of Kafka Streams with state unknown instead until the owner's first "
        "commit: whether it restores is in no record.",
        "the history, Fetch from the committed offset",
    ),
    PartitionStatus.FALLING_BEHIND: Meaning(
        "In both halves of the last minutes, ten at most, its oldest unread record got older and more "
        "records waited; or its owner works on older records of another partition first.",
        "the history, Fetch, ListOffsets by time",
    ),
    PartitionStatus.READING: Meaning(
        "Records wait, and its owner goes on.", "the history; without it, no record is older than 15 s"
    ),
    PartitionStatus.UNKNOWN: Meaning(
        "Something that decides was not seen: the row names it. `describe`, `lag`, `wait` and `watch` read "
        "no "
        "history; where records have waited for 15 s only `doctor` says whether the reader goes on.",
        "what the row names",
    ),
}

SPARE, UNSTORED, UNTRANSACTED, DAMAGED_LOG = "KG105", "KG123", "KG124", "KG321"
_DOCTOR, _DESCRIBE, _BLAME = "kgroup doctor GROUP", "kgroup describe GROUP", "kgroup blame GROUP"
_OFFSETS = "kgroup describe GROUP --section offsets"
_HISTORY = "kgroup replay-log GROUP --since 1h"
_CONFIG = "kgroup config get GROUP"
_BOTH = "kgroup describe GROUP --zookeeper HOST:PORT"

CODES: dict[str, Code] = {
    "KG101": Code(
        WARN,
        "A member has not reached its target assignment, or that is not computed yet",
        "Usually passes within the rebalance timeout. If it lasts, restart the named member.",
        (_DOCTOR,),
        "moving",
    ),
    "KG102": Code(
        WARN,
        "The group is rebalancing",
        "Wait for it to end. If it lasts, doctor names the member it waits for.",
        (_DOCTOR, _BLAME),
        "moving",
    ),
    "KG103": Code(
        WARN,
        "A static member left for now and keeps its partitions",
        "Start the member again, or remove it: until then its partitions are not read.",
        ("kgroup remove-members GROUP --left-only",),
        "absent",
    ),
    "KG104": Code(
        ERROR,
        "Partitions of subscribed topics are assigned to no member",
        "Wait for a running rebalance; else start a member, or see which assignor leaves them out.",
        (_DOCTOR,),
        "unread",
    ),
    SPARE: Code(
        INFO,
        "Members have no partitions, or less than half as many as another one",
        "Nothing, if they are spares. Else add partitions, or stop members. The assignor `range` assigns "
        "each topic by itself: another one shares the partitions of small topics among all members.",
        (_DESCRIBE,),
    ),
    "KG106": Code(
        INFO,
        "Members share a client id",
        "Give each client a client.id of its own: quotas and broker logs distinguish them.",
        (_DESCRIBE,),
    ),
    "KG107": Code(
        INFO,
        "Static and dynamic members are mixed",
        "Give all members a group.instance.id, or none: only static ones restart unnoticed.",
        (_DESCRIBE,),
    ),
    "KG108": Code(
        ERROR,
        "A streams group lacks topics of its topology: none of its tasks is assigned",
        "Create the named topics with the partitions that the topology needs.",
        (_DESCRIBE,),
    ),
    "KG109": Code(
        WARN,
        "Connect holds back work of lost workers: no worker runs it meanwhile",
        "Start the lost worker within scheduled.rebalance.max.delay.ms; after it the others get its work.",
        (_DESCRIBE, _BLAME),
    ),
    "KG110": Code(
        WARN,
        "An instance id changes hands repeatedly: two processes share it, or one crashes again and again",
        "Find the two processes with this group.instance.id, and give one of them another.",
        (_HISTORY, _BLAME),
    ),
    "KG111": Code(
        WARN,
        "The group rebalances repeatedly",
        "Find what sets the rebalances off: restarts, session time-outs, or slow polls.",
        (_HISTORY, _BLAME),
    ),
    "KG112": Code(
        ERROR,
        "A rebalance is stuck: it waits for members",
        "Restart the members it waits for, or remove those that are gone.",
        (_DOCTOR,),
    ),
    "KG113": Code(
        WARN,
        "Static members take longer to restart than session.timeout.ms",
        "Raise the session timeout above the time of a restart, or restart faster.",
        (_CONFIG, _HISTORY),
    ),
    "KG114": Code(
        WARN,
        "Registered instance ids are missing for longer than the group waits",
        "Start the missing members, or remove them from the list.",
        ("kgroup member unregister GROUP",),
    ),
    "KG115": Code(
        WARN,
        "The group has fewer active members than its target size",
        "Start more members, or lower the target size.",
        ("kgroup member register GROUP --target-size N",),
    ),
    "KG116": Code(
        INFO,
        "Whether Connect's tasks fail is not in the group: only who runs them is seen",
        "Ask Connect's REST API: GET /connectors?expand=status.",
        (_DESCRIBE,),
    ),
    "KG117": Code(
        INFO,
        "The group has as many members as its broker allows, or that limit is not known",
        "Raise the broker's limit, or stop a member before another one joins.",
        (_DOCTOR,),
    ),
    "KG118": Code(
        INFO,
        "Deliveries of a share group are not seen: only start offsets and lag are",
        "Read what was released and given up in the log; locks are in the brokers' metrics only.",
        ("kgroup lag GROUP", _HISTORY),
    ),
    "KG119": Code(
        WARN,
        "Records wait, and the group has no members",
        "Start the group's consumers.",
        ("kgroup lag GROUP --time",),
        "unread",
    ),
    "KG120": Code(
        WARN,
        "Offsets are committed from outside the membership",
        "Find the tool or the consumer that commits in this group's name, and give it a group id of its own. "
        "MirrorMaker's sync.group.offsets commits so for groups that are to move.",
        (_HISTORY,),
    ),
    "KG121": Code(
        WARN,
        "Members subscribe to topics that no other member shares: several applications use one group id",
        "Give each application a group id of its own: a rebalance of one stops the other.",
        (_DESCRIBE,),
    ),
    "KG122": Code(
        ERROR,
        "Members subscribe to patterns that match no topic: they read nothing",
        "Create the topic, or correct the pattern.",
        ("kgroup regex check PATTERN", _DESCRIBE),
    ),
    UNSTORED: Code(
        ERROR,
        "The coordinator can store nothing: too few replicas of __consumer_offsets are in sync",
        "Start the brokers that are missing, or lower min.insync.replicas of __consumer_offsets until then.",
        ("kgroup cluster topics __consumer_offsets --internal", _DOCTOR),
    ),
    UNTRANSACTED: Code(
        ERROR,
        "Transactions cannot be stored: too few replicas of __transaction_state are in sync",
        "Start the brokers that are missing, or lower min.insync.replicas of __transaction_state until then.",
        ("kgroup cluster topics __transaction_state --internal", _DOCTOR),
    ),
    "KG201": Code(
        INFO,
        "Members of a consumer group still speak the classic protocol",
        "Finish the rolling restart with group.protocol=consumer, or, on the way back, with classic.",
        ("kgroup upgrade watch GROUP", "kgroup downgrade watch GROUP"),
    ),
    "KG211": Code(
        WARN,
        "Assignments carry user data: the broker will refuse consumer-protocol members",
        "Change to an assignor without user data, or upgrade the group while it is empty.",
        ("kgroup upgrade plan GROUP",),
    ),
    "KG301": Code(
        ERROR,
        "A committed offset lies beyond the end of the log: topic recreated, or records lost",
        "Find out whether the topic was recreated. If so, read the new one from its start, not its end.",
        (_OFFSETS, "kgroup reset-offsets GROUP --topic TOPIC --to-earliest"),
        "beyond-end",
    ),
    "KG302": Code(
        WARN,
        "Offsets are committed for partitions that do not exist",
        "Delete them if the topic is gone for good.",
        ("kgroup offsets delete GROUP --topic TOPIC",),
        "gone",
    ),
    "KG303": Code(
        WARN,
        "A subscribed topic does not exist",
        "Create the topic, or correct the subscription.",
        ("kgroup cluster topics", _DESCRIBE),
    ),
    "KG304": Code(
        INFO,
        "The group is empty and holds offsets, which will expire",
        "Nothing, if its readers come back in time. Else keep the offsets.",
        ("kgroup offsets export GROUP",),
    ),
    "KG305": Code(
        INFO,
        "Offsets are committed for topics that no member subscribes to",
        "Nothing, if they are no longer read: their offsets expire by themselves. Else start their readers.",
        ("kgroup lag GROUP", _OFFSETS),
        "unsubscribed",
    ),
    "KG306": Code(
        WARN,
        "An assigned partition has no committed offset",
        "Wait for the first commit. If it does not come, see auto.offset.reset, and why members end. Where "
        "the topic was created again, restart members of librdkafka (2.16): they pass over its leaders until "
        "those have as high an epoch as the former topic's, and read nothing, with any broker.",
        (_OFFSETS,),
        "not-begun",
    ),
    "KG307": Code(
        WARN,
        "The group's offsets expire soon",
        "Keep the offsets, or start a reader before they expire.",
        ("kgroup offsets export GROUP", _DOCTOR),
    ),
    "KG308": Code(
        ERROR,
        "Records were deleted before the group read them",
        "Those records are lost. Let the group catch up, or raise the topic's retention.",
        ("kgroup lag GROUP", _DOCTOR),
        "purged",
    ),
    "KG309": Code(
        ERROR,
        "A transaction holds offsets open for longer than the group's others: new readers wait until it ends",
        "Find the producer, and let it end the transaction; Kafka's kafka-transactions.sh can abort it.",
        (_DOCTOR,),
    ),
    "KG310": Code(
        ERROR,
        "A member has stopped committing while records wait for it",
        "Look at the named client: it polls and does not commit, or hangs.",
        (_DOCTOR, _BLAME),
        "stalled",
    ),
    "KG311": Code(
        ERROR,
        "A transaction that does not end holds back readers of committed records",
        "Find the producer, and let it end the transaction; Kafka's kafka-transactions.sh can abort it.",
        (_DOCTOR,),
        "held-back",
    ),
    "KG312": Code(
        WARN,
        "Unread records are about to be deleted",
        "Start or add readers, or raise the topic's retention, before the records are deleted.",
        ("kgroup lag GROUP --time", _DOCTOR),
    ),
    "KG313": Code(
        WARN,
        "Committed offsets were lost with a topic that was deleted",
        "Nothing brings the records back. Correct the subscription, or create the topic again.",
        (_DOCTOR, _HISTORY),
    ),
    "KG314": Code(
        ERROR,
        "Members of a share group finish no records while records wait",
        "Look at what the members process: a record is done when it is acknowledged or given up.",
        ("kgroup replay-log GROUP --since 1h", _CONFIG),
    ),
    "KG315": Code(
        WARN,
        "Records of a share group wait longer and longer while its members finish others",
        "Start more members: several may read one partition.",
        ("kgroup lag GROUP --rate 30s", _DOCTOR),
    ),
    "KG316": Code(
        WARN,
        "Records of a share group were given up at the delivery count limit",
        "These records are not delivered again. Find out why no member accepted them; send them again. It is "
        "an error where three or more were given up in a row and none was finished since.",
        (_HISTORY, _CONFIG),
    ),
    "KG317": Code(
        INFO,
        "Members of a share group rejected records",
        "Nothing, if the members mean it. Rejected records are not delivered again.",
        (_HISTORY,),
    ),
    "KG318": Code(
        INFO,
        "Records of a share group came back: released, or their locks timed out",
        "If members release them, look at what they process; else their locks are shorter than the work.",
        (_HISTORY, _CONFIG),
    ),
    "KG319": Code(
        ERROR,
        "Offsets were committed for a former topic of the same name, or in another cluster",
        "Decide where to begin in the new topic: its records from the start, or from now on.",
        (_OFFSETS, "kgroup reset-offsets GROUP --topic TOPIC --to-earliest"),
        "recreated",
    ),
    "KG320": Code(
        WARN,
        "A partition falls behind: records come faster than they are taken, or another one's go first",
        "Add members or partitions, process faster, or raise its clients' quota: records arrive faster than "
        "they are read.",
        ("kgroup lag GROUP --rate 30s", "kgroup lag GROUP --time"),
        "falling-behind",
    ),
    DAMAGED_LOG: Code(
        ERROR,
        "The log is damaged where a reader goes on: its batch fails its checksum",
        "Make a replica with a sound copy the leader. Without one, set the offset beyond the batch.",
        (_OFFSETS, "kgroup reset-offsets GROUP --topic TOPIC --to-offset N"),
        "damaged",
    ),
    "KG322": Code(
        WARN,
        "A committed offset was set back, or deleted and begun anew: records are read again",
        "Nothing, if it was meant. Else stop the readers, and set the offset forward again.",
        (_BLAME, "kgroup replay-log GROUP --since 1h --events rewound", _OFFSETS),
    ),
    "KG401": Code(
        INFO,
        "Offsets are committed to Kafka (offsets.storage=kafka), not to ZooKeeper",
        "Read the offsets from Kafka.",
        (_DESCRIBE,),
    ),
    "KG402": Code(
        WARN,
        "Partitions have no owner, or one that is not registered",
        "Wait for a rebalance to end. If it lasts, restart the consumers.",
        (_BOTH,),
    ),
    "KG403": Code(
        WARN,
        "Committed offsets in ZooKeeper differ from those in Kafka",
        "See which of the two the consumers read (offsets.storage) before you move the group.",
        (_BOTH,),
    ),
    "KG404": Code(
        INFO,
        "Consumers are registered and no offset is committed anywhere",
        "Wait for the first commit; without one, a restart reads from auto.offset.reset.",
        (_BOTH,),
    ),
}
