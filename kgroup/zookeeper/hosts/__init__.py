"""The host of the coordinator of the ZooKeeper era: `brokers` gives each broker of a served cluster one.

Imported only by who serves with it. `host` drives a machine over a listener and a link to ZooKeeper, which is
a tree in this process (`tree_link`) or a real ensemble (`session_link`); `registrar` keeps the tree's brokers
and topics as the cluster has them; `metrics` tells what the coordinator alone knows.
"""
