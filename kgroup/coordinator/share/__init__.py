"""Share groups: members that read the same partitions together, record by record (KIP-932).

A share group's members are assigned partitions as those of a consumer group are, but several may read one,
so that none waits for another to revoke it: `heartbeat` takes a member to its target in one step. Who reads
what is decided by `simple`, Kafka's only assignor for share groups. What was delivered is not known here: the
share coordinator (`kgroup.share`) keeps it, and `state_partitions` records of which partitions. The host
carries an `Initialize` there and reports the result to the group; only then is a partition assigned.
Members, epochs, targets and those partitions are hard state, written as `records` and changed by replay
alone.
"""
