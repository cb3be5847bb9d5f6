"""Groups of the consumer protocol: one heartbeat joins, changes, reconciles (KIP-848, KIP-1251).

Three counters: the group epoch rises when the subscriptions or their topics change (`advance.announce`,
`subscription`); the assignment epoch is that of the target an assignor made for it (`target`); each member
has its own epoch, and `reconcile` moves it towards the target one step a heartbeat, giving up before getting.
All of that is hard state, written as records and changed by replay; only `told` and the refresh deadline of
`ConsumerGroup` are soft. `commit_check` says who may commit at which epoch. Nothing here knows classic
groups: `migration` converts. Entrances: `heartbeat.heartbeat`, `leave`, `advance` (for classic members), and
timers by `Coordinator.wake`.
"""
