"""Streams groups: applications of Kafka Streams whose tasks the coordinator hands out (KIP-1071, KIP-1251).

A member is one thread's client of a process; what it is given are tasks, a subtopology and a partition each:
active ones, which it processes, and standbys, which only keep state warm. The first member to join brings
the topology. `topology` finds out what it needs of the cluster's topics, and what is missing or wrong;
no task is given before all is well. Then as in the consumer protocol: `heartbeat` announces, `target` has
the assignor of the room `tasks` compute, `reconcile` moves a member one step at a time, giving up first.
Members, epochs, targets and the topology are hard state, written as `records` and changed by replay;
the configured topology, endpoints and a request to shut down are soft. Nothing here knows another protocol.
"""
