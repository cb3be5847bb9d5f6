"""Share groups: members that read the same partitions together, record by record (KIP-932).

A share group's members are assigned partitions as those of a consumer group are, but several may read one.
So no member waits for another to revoke it: `heartbeat` takes a member to its target in one step. `simple`,
Kafka's only assignor for share groups, computes the targets. Deliveries are not known here: the share
coordinator (`kgroup.share`) keeps them, and `state_partitions` records for which partitions. The host sends
it an `Initialize` and reports the result to the group; only then is a partition assigned. Members, epochs,
targets and those partitions are hard state, written as `records` and changed by replay alone.
"""
