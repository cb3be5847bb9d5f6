"""The remedy of each finding of `describe` and `doctor`; severity and title are with the checks."""

_DOCTOR, _DESCRIBE, _BLAME = "kgroup doctor GROUP", "kgroup describe GROUP", "kgroup blame GROUP"
_OFFSETS = "kgroup describe GROUP --section offsets"
_HISTORY = "kgroup replay-log GROUP --since 1h"
_CONFIG = "kgroup config get GROUP"
_BOTH = "kgroup describe GROUP --zookeeper HOST:PORT"

REMEDIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "KG101": (
        "Usually passes within the rebalance timeout. If it lasts, restart the named member.",
        (_DOCTOR,),
    ),
    "KG102": ("Wait for it to end. If it lasts, doctor names the member it waits for.", (_DOCTOR, _BLAME)),
    "KG103": (
        "Start the member again, or remove it: until then its partitions are not read.",
        ("kgroup remove-members GROUP --left-only",),
    ),
    "KG104": (
        "Wait for a running rebalance; else start a member, or see which assignor leaves them out.",
        (_DOCTOR,),
    ),
    "KG105": ("Nothing, if they are spares. Else add partitions, or stop members.", (_DESCRIBE,)),
    "KG106": (
        "Give each client a client.id of its own: quotas and broker logs distinguish them.",
        (_DESCRIBE,),
    ),
    "KG107": (
        "Give all members a group.instance.id, or none: only static ones restart unnoticed.",
        (_DESCRIBE,),
    ),
    "KG108": ("Create the named topics with the partitions that the topology needs.", (_DESCRIBE,)),
    "KG109": (
        "Start the lost worker within scheduled.rebalance.max.delay.ms; after it the others get its work.",
        (_DESCRIBE, _BLAME),
    ),
    "KG110": (
        "Find the two processes with this group.instance.id, and give one of them another.",
        (_HISTORY, _BLAME),
    ),
    "KG111": (
        "Find what sets the rebalances off: restarts, session time-outs, or slow polls.",
        (_HISTORY, _BLAME),
    ),
    "KG112": ("Restart the members it waits for, or remove those that are gone.", (_DOCTOR,)),
    "KG113": (
        "Raise the session timeout above the time of a restart, or restart faster.",
        (_CONFIG, _HISTORY),
    ),
    "KG114": (
        "Start the missing members, or remove them from the list.",
        ("kgroup member unregister GROUP",),
    ),
    "KG115": (
        "Start more members, or lower the target size.",
        ("kgroup member register GROUP --target-size N",),
    ),
    "KG116": ("Ask Connect's REST API: GET /connectors?expand=status.", (_DESCRIBE,)),
    "KG117": ("Raise the broker's limit, or stop a member before another one joins.", (_DOCTOR,)),
    "KG118": (
        "Read what was released and given up in the log; locks are in the brokers' metrics only.",
        ("kgroup lag GROUP", _HISTORY),
    ),
    "KG119": ("Start the group's consumers.", ("kgroup lag GROUP --time",)),
    "KG201": ("Finish the rolling restart with group.protocol=consumer.", ("kgroup upgrade watch GROUP",)),
    "KG211": (
        "Change to an assignor without user data, or upgrade the group while it is empty.",
        ("kgroup upgrade plan GROUP",),
    ),
    "KG301": (
        "Find out whether the topic was recreated. If so, read the new one from its start, not its end.",
        (_OFFSETS, "kgroup reset-offsets GROUP --topic TOPIC --to-earliest"),
    ),
    "KG302": ("Delete them if the topic is gone for good.", ("kgroup offsets delete GROUP --topic TOPIC",)),
    "KG303": ("Create the topic, or correct the subscription.", ("kgroup cluster topics", _DESCRIBE)),
    "KG304": (
        "Nothing, if its readers come back in time. Else keep the offsets.",
        ("kgroup offsets export GROUP",),
    ),
    "KG305": (
        "Delete them if these topics are no longer read.",
        ("kgroup offsets delete GROUP --topic TOPIC",),
    ),
    "KG306": ("Wait for the first commit. If it does not come, see auto.offset.reset.", (_OFFSETS,)),
    "KG307": (
        "Keep the offsets, or start a reader before they expire.",
        ("kgroup offsets export GROUP", _DOCTOR),
    ),
    "KG308": (
        "Those records are lost. Let the group catch up, or raise the topic's retention.",
        ("kgroup lag GROUP", _DOCTOR),
    ),
    "KG309": (
        "Find the producer, and let it end the transaction; Kafka's kafka-transactions.sh can abort it.",
        (_DOCTOR,),
    ),
    "KG310": ("Look at the named client: it polls and does not commit, or hangs.", (_DOCTOR, _BLAME)),
    "KG311": (
        "Find the producer, and let it end the transaction; Kafka's kafka-transactions.sh can abort it.",
        (_DOCTOR,),
    ),
    "KG312": (
        "Start or add readers, or raise the topic's retention, before the records are deleted.",
        ("kgroup lag GROUP --time", _DOCTOR),
    ),
    "KG313": (
        "Nothing brings the records back. Correct the subscription, or create the topic again.",
        (_DOCTOR, _HISTORY),
    ),
    "KG314": (
        "Look at what the members process: a record is done when it is acknowledged or given up.",
        ("kgroup lag GROUP --rate 30s", "kgroup config get GROUP"),
    ),
    "KG315": (
        "Start more members: several may read one partition. A short peak of records looks the same.",
        ("kgroup lag GROUP --rate 30s", _DOCTOR),
    ),
    "KG316": (
        "These records are not delivered again. Find out why no member accepted them; send them again.",
        (_HISTORY, "kgroup config get GROUP"),
    ),
    "KG317": ("Nothing, if the members mean it. Rejected records are not delivered again.", (_HISTORY,)),
    "KG318": (
        "If members release them, look at what they process; else their locks are shorter than the work.",
        (_HISTORY, "kgroup config get GROUP"),
    ),
    "KG401": ("Read the offsets from Kafka.", (_DESCRIBE,)),
    "KG402": ("Wait for a rebalance to end. If it lasts, restart the consumers.", (_BOTH,)),
    "KG403": (
        "See which of the two the consumers read (offsets.storage) before you move the group.",
        (_BOTH,),
    ),
    "KG404": ("Wait for the first commit; without one, a restart reads from auto.offset.reset.", (_BOTH,)),
}
"""The remedy by code, and the commands to begin with; each shows something, or a plan."""
