"""Consumer groups of Kafka 0.8 to 1.1 that live in ZooKeeper: read, described, exported and deleted.

They become the values that the admin layer shows. Nothing here imports kazoo: the function that asks
ZooKeeper is passed in, so a tree in memory works too.
"""
