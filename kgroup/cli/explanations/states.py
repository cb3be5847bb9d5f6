"""The states of groups and members of both protocols, as `describe` and Kafka's tools print them."""

from kgroup.cli.explanations.entry import Entry, EntryKind

DESCRIBE = "kgroup describe GROUP"
MEMBERS = "kgroup describe GROUP --section members"

GROUP_STATES: tuple[Entry, ...] = (
    Entry(
        "Stable",
        EntryKind.GROUP_STATE,
        "Every member has its assignment; there is nothing to do.",
        classic="All members have synced the current generation.",
        consumer="All members are at the current epoch and own what they should.",
        next=(DESCRIBE,),
    ),
    Entry(
        "Empty",
        EntryKind.GROUP_STATE,
        "The group has no members; its committed offsets are kept until they expire.",
        classic="Offsets expire offsets.retention.minutes after the group became empty.",
        consumer="Offsets expire offsets.retention.minutes after each was committed, so an idle partition's "
        "offset may go while others stay.",
        cause="All consumers are stopped, or none ever joined and only offsets were committed.",
        next=(DESCRIBE,),
    ),
    Entry(
        "Unsettled",
        EntryKind.GROUP_STATE,
        "A group in ZooKeeper (Kafka 0.8 to 1.1): consumers are registered, and a partition has no "
        "owner, or an owner that is not registered.",
        cause="A rebalance in progress, or one that failed: ZooKeeper does not say which. If it lasts, a "
        "consumer gave up with ConsumerRebalanceFailedException and has to be restarted.",
        next=("kgroup describe GROUP --zookeeper HOST:PORT",),
    ),
    Entry(
        "Live",
        EntryKind.GROUP_STATE,
        "A group in ZooKeeper (Kafka 0.8 to 1.1): consumers are registered; whether all their partitions "
        "have owners is unknown.",
        cause="A topic pattern that only Java understands, or nodes that may not be read.",
        next=("kgroup describe GROUP --zookeeper HOST:PORT",),
    ),
    Entry(
        "Unknown",
        EntryKind.GROUP_STATE,
        "A group in ZooKeeper (Kafka 0.8 to 1.1); it is unknown whether it is in use.",
        cause="Partitions have owners although none is registered, or registrations may not be read.",
        next=("kgroup describe GROUP --zookeeper HOST:PORT",),
    ),
    Entry(
        "Dead",
        EntryKind.GROUP_STATE,
        "The coordinator holds no such group.",
        classic="The group was deleted or unloaded. Brokers before 3.9 answer this for groups that do not "
        "exist, and for groups of the consumer protocol when asked with the classic request.",
        consumer="The group was deleted or unloaded.",
        cause="A misspelt id, or a tool that does not know the group's protocol.",
        next=("kgroup list", DESCRIBE),
    ),
    Entry(
        "PreparingRebalance",
        EntryKind.GROUP_STATE,
        "A rebalance has begun and waits for all members to join again.",
        classic="It lasts no longer than the largest rebalance timeout of the members; those that have not "
        "rejoined by then are dropped, except static members. The first join to an empty group waits "
        "group.initial.rebalance.delay.ms.",
        consumer="Does not occur; see Reconciling.",
        cause="If it lasts, a member is busy between two polls, or dead and not yet timed out.",
        next=(MEMBERS,),
        aliases=("Preparing",),
    ),
    Entry(
        "CompletingRebalance",
        EntryKind.GROUP_STATE,
        "All have joined; the members are waiting for the leader's assignment.",
        classic="Members that do not sync within the rebalance timeout are removed, the leader included.",
        consumer="Does not occur; see Assigning.",
        cause="If it lasts, the leader is slow, crashed while assigning, or is reading the metadata of many "
        "topics.",
        next=(MEMBERS,),
        aliases=("Completing", "AwaitingSync"),
    ),
    Entry(
        "Assigning",
        EntryKind.GROUP_STATE,
        "The group epoch has moved on, and the new target assignment has not been computed yet.",
        classic="Does not occur.",
        consumer="The next heartbeat of any member computes it. If it lasts, no member sends heartbeats, or "
        "group.consumer.assignment.interval.ms holds it back.",
        cause="A member joined, left or changed its subscription; a topic changed; the coordinator has "
        "just loaded the group.",
        next=(DESCRIBE,),
    ),
    Entry(
        "Reconciling",
        EntryKind.GROUP_STATE,
        "The target assignment stands; some members have not reached it.",
        classic="Does not occur.",
        consumer="Members give up partitions first, then others take them; no member stops as a whole. "
        "Also shown for hours while a static member is away (epoch -2): no member reads its partitions until "
        "it returns or its session times out.",
        cause="If it lasts, a member has not confirmed a revocation, or a static member has left "
        "temporarily.",
        next=(MEMBERS, "kgroup explain revoking"),
    ),
    Entry(
        "NotReady",
        EntryKind.GROUP_STATE,
        "A Streams group lacks topics that it needs before tasks can be assigned.",
        consumer="Streams groups only (KIP-1071).",
        cause="A source topic is missing, or internal topics are still being created.",
        next=(DESCRIBE,),
    ),
    Entry(
        "Unknown",
        EntryKind.GROUP_STATE,
        "The broker reported a state that this version does not know.",
        cause="A broker newer than this tool.",
        next=("kgroup --version",),
    ),
)

MEMBER_STATES: tuple[Entry, ...] = (
    Entry(
        "revoking",
        EntryKind.MEMBER_STATE,
        "The member must give up partitions and has not confirmed that it did.",
        classic="Cooperative members revoke between two joins; eager members give up everything at once.",
        consumer="Its epoch stays behind until it confirms. After its rebalance timeout it is removed from "
        "the group.",
        cause="A long batch, or a rebalance listener that does not return.",
        next=(MEMBERS,),
        aliases=("UNREVOKED_PARTITIONS", "UnrevokedPartitions"),
    ),
    Entry(
        "waiting",
        EntryKind.MEMBER_STATE,
        "The member is waiting for partitions that another member has not released.",
        consumer="It is at the current epoch and reads what it already owns; the rest follows partition by "
        "partition.",
        cause="Another member is revoking, or a static member that left temporarily still holds them.",
        next=(MEMBERS,),
        aliases=("UNRELEASED_PARTITIONS", "UnreleasedPartitions"),
    ),
    Entry(
        "left",
        EntryKind.MEMBER_STATE,
        "A static member that shut down and may come back: member epoch -2.",
        classic="Not visible: a stopped static member looks like a live one until its session times out.",
        consumer="It keeps its partitions, and no member reads them. If it returns with the same "
        "group.instance.id, it gets them back without a rebalance; if its session times out, they move.",
        cause="A rolling restart. If it lasts, a deployment that was scaled down.",
        next=("kgroup remove-members GROUP --left-only",),
        aliases=("-2", "left-temporarily"),
    ),
    Entry(
        "static member",
        EntryKind.MEMBER_STATE,
        "A member with a group.instance.id (KIP-345): its place in the group outlives its process.",
        classic="Closing or restarting it sends no LeaveGroup. If it is back within its session timeout, it "
        "has its old assignment under a new member id, without a rebalance.",
        consumer="The same; a member that closes says so with epoch -2, and is shown as left.",
        cause="It favours keeping state over reacting fast: its partitions are not read while it is away, "
        "until its session times out. Make the timeout longer than a restart takes, let the platform "
        "watch the processes, and remove members that will not return.",
        next=("kgroup describe GROUP --by instance", "kgroup remove-members GROUP --instance-id ID"),
        aliases=("static membership", "static", "group.instance.id"),
    ),
    Entry(
        "member epoch",
        EntryKind.MEMBER_STATE,
        "A member's version of the assignment in the consumer protocol (KIP-848).",
        classic="The group's generation serves instead.",
        consumer="0: joining, -1: leaving, -2: static member away; otherwise the target epoch that the "
        "member has reached. Never above the assignment epoch, which is never above the group epoch.",
        next=(MEMBERS,),
        aliases=("member_epoch", "group epoch", "assignment epoch", "generation"),
    ),
)

STATES: tuple[Entry, ...] = GROUP_STATES + MEMBER_STATES
