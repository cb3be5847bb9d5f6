"""The host of the coordinator of the ZooKeeper era, which `entry.serve` gives each broker of a cluster.

`host` connects a machine to a listener and to ZooKeeper (`links`): a tree in this process or a real ensemble.
`registrar` keeps the tree's brokers and topics as the cluster has them.
"""
