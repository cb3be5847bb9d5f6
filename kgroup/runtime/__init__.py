"""The hosts of the machines: a coordinator with its log is a shard, shards and topics are a cluster.

`shard` keeps the one order that matters: append, replay, then reply; `transaction_shard` does so for
transactions. `cluster` has them all, with the logs of topics, `placement` and `cleaning`; `catalog`
remembers what is not in a log (topics, groups' settings, producer ids), `acl_store` the access rules,
`credentials` the SCRAM users. `settings` and its neighbours are what a broker and a topic may be told, and
by whom. `clock` is where hosts get the time.

To be used from above: `Cluster`, and through it the rest. Nothing here knows a socket or a request's bytes.
Promised: what was answered is in the log, or the shard is thrown away and loaded again.
"""
