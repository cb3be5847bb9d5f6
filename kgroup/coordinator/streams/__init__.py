"""Streams groups: applications of Kafka Streams whose tasks the coordinator assigns (KIP-1071, KIP-1251).

A member is one thread's client of a process. It is assigned tasks, each a partition of a subtopology: active
ones, which it processes, and standbys, which only keep state warm. The first member to join brings the
topology. `topology` finds out which topics it needs, and what is missing or wrong; no task is assigned before
all is well. Then as in the consumer protocol: `heartbeat` announces, `target` calls the assignor of the room
`tasks`, `reconcile` moves a member one step at a time, revoking first. Members, epochs, targets and the
topology are hard state, written as `records` and changed by replay; the configured topology, endpoints and a
request to shut down are soft. Nothing here knows another protocol.
"""
