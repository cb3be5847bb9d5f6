"""The cluster over TCP and in process: bytes to calls, calls to shards, answers back in order.

`server` has one event loop for all brokers, `connection` one client's bytes, `routes` turns them into
calls; `dispatch` finds the handler of each API in `handlers`, with `rights` before it and `authentication`
before everything. `tickets` records which call waits for which reply of a shard, `wakeups` every deadline
of the process. `embedded` is the same dispatch without a socket. `produced` and `producers` check what is
appended; `transactions` writes markers. `legacy` hosts the coordinators of the ZooKeeper era.

Entry points: `server.serve`, `EmbeddedTransport`. Guarantees: each connection's calls are carried out one at
a time and answered in order; no client can make the others wait for longer than a turn (`turns`).
"""
