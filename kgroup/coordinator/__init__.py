"""The group coordinator as a machine: requests and time in, records and replies out (`Coordinator`).

**The theory.** A step decides: it reads the state, and collects records, replies and timers in a `Step`. A
refusal drops them all, so it may come at any moment and still mean that nothing happened. What was decided
comes back as an `Outcome`; its host appends the records as one batch, gives each back through `replay`, and
only then sends the replies. So the log is ahead of the memory, never behind it: who was answered can rely on
a restart.

**Hard and soft.** Hard state is what records say: members, targets, assignments, offsets. It changes by
`replay` and nothing else, which is why reading a log gives the group that wrote it. Soft state is what a
restart may forget: timers, parked joins and syncs, a classic rebalance that is still forming (`Forming`), ids
handed out. It changes at once in classic groups, and through `Step.defer` where a refusal may still follow.

**Time and chance** come from outside: `now_ms` with each call, ids from a seed. `next_wake_ms` tells when the
next timer is due and `wake` fires it. The same seed and calls give the same bytes, which is what the
simulator, the differential test against Kafka's own coordinator and `replay-log` stand on.

**The rooms.** `classic` (KIP-345), `consumer` (KIP-848, KIP-1251) and `streams` (KIP-1071) know nothing of
each other; `migration` stands above them, for groups that change their type and classic members inside a
consumer group. `offsets` commits, fetches, deletes and expires for groups of every type; `assignors` and
`tasks` are pure functions: who gets which partitions, and which tasks. One `Coordinator` serves one
partition of `__consumer_offsets`. The states of a group are drawn in docs/states.md, and a test holds the
figure to the code.
"""
