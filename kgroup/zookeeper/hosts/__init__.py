"""The host of the coordinator of the ZooKeeper era, which `entry.serve` gives each broker of a cluster.

`host` drives a machine over a listener and a link to ZooKeeper (`links`), which is a tree in this process or
a real ensemble; `registrar` keeps the tree's brokers and topics as the cluster has them.
"""
