"""A simulated cluster of the ZooKeeper era: brokers, a tree, consumers, a network that fails."""
