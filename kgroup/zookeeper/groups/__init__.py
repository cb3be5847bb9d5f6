"""Consumer groups of Kafka 0.8 to 1.1 that live in ZooKeeper: read, described, exported and deleted.

They become values of the kinds that the admin layer shows. Nothing here knows kazoo: what asks ZooKeeper is
handed in, so a tree in memory does as well.
"""
