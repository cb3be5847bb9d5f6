"""Groups of the consumer protocol: one heartbeat joins, changes, reconciles (KIP-848, KIP-1251).

Three counters: the group epoch rises when the subscriptions or their topics change (`advance.announce`,
`subscription`); the assignment epoch is that of the target an assignor made for it (`target`); each member
has its own epoch, and `reconcile` moves it towards the target one step per heartbeat, revoking before
assigning. All of that is hard state, written as records and changed by replay; the soft fields are listed in
`ConsumerGroup`. `commit_check` decides which member may commit at which epoch. Nothing here knows classic
groups: `migration` converts. Entry points: `heartbeat.heartbeat`, `leave`, `advance` (for classic members),
and timers by `Coordinator.wake`.
"""
