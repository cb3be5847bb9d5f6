"""All that the rest of kgroup imports of the ZooKeeper era: one file per user, imported on use.

`tree` is for `--zookeeper`, `serve` and `member` for `--legacy`, `simulate` for the protocol push.
"""
