"""Groups of the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup (KIP-345, KIP-134, KIP-394).

A group is its last record (`ClassicGroup.committed`) and, while it rebalances, a `Forming` on top of it;
every state name is derived from the two. Joins and syncs wait as parked requests until `rebalance` completes
a phase, early when no member is missing, else by its timer. Members and their parked requests change at once,
not by replay, because a rebalance writes nothing until its leader has synced. A restart in between starts it
over, and clients rejoin. Static members: `static` (a bounce within the session), `join` (ids),
`rebalance.complete` (which are kept). `roster` has what groups with registered ids or a target size do
otherwise. Entry points: `join.join`, `sync.sync`, `heartbeat.heartbeat`, `leave.leave`, and the timers in
`rebalance`.
"""
