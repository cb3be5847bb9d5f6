"""The hosts of the machines: a coordinator with its log is a shard, shards and topics are a cluster.

`shard` keeps the one order that matters: append, replay, then reply; `transaction_shard` does so for
transactions. `cluster` has them all, with the logs of topics, `placement` and `cleaning`; `catalog`
stores what is not in a log (topics, groups' settings, producer ids), `acl_store` the access rules,
`credentials` the SCRAM users. `settings` and its neighbours are the settings of a broker and a topic, and
where each is given. `clock` is where hosts get the time.

Entry point: `Cluster`, and through it the rest. Nothing here knows a socket or a request's bytes.
Guarantee: what was answered is in the log, or the shard is dropped and loaded again.
"""
