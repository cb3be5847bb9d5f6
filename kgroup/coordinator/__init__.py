"""The group coordinator as a machine: requests and time in, records and replies out (`Coordinator`).

**The theory.** A step reads the state and collects records, replies and timers in a `Step`. A refusal drops
them all, so it may come at any moment and nothing has happened. The decisions come back as an `Outcome`. Its
host appends the records as one batch, passes each to `replay`, and only then sends the replies. So the log is
ahead of memory, never behind it: a client that was answered can rely on a restart.

**Hard and soft.** Hard state is what records say: members, targets, assignments, offsets. Only `replay`
changes it, which is why reading a log yields the group that wrote it. Soft state is what a restart may lose:
timers, parked joins and syncs, a classic rebalance that is still forming (`Forming`), ids handed out. It
changes at once in classic groups, and through `Step.defer` where a refusal may still follow.

**Time and chance** come from outside: `now_ms` with each call, ids from a seed. `next_wake_ms` returns when
the next timer is due and `wake` fires it. The same seed and calls give the same bytes; the simulator, the
differential test against Kafka's own coordinator and `replay-log` rely on that.

**The rooms.** `classic` (KIP-345), `consumer` (KIP-848, KIP-1251) and `streams` (KIP-1071) do not know each
other. `migration` is above them, for groups that change their type and classic members inside a consumer
group. `offsets` commits, fetches, deletes and expires for groups of every type; `assignors` and `tasks` are
pure functions that assign partitions and tasks. One `Coordinator` serves one partition of
`__consumer_offsets`. docs/states.md draws the states of a group, and a test compares the figure with the
code.
"""
