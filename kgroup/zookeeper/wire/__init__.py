"""Bytes and messages of the coordinator of the ZooKeeper era, which no released Kafka speaks.

`messages` are the values, with the keys and error codes of their own; `codec.Wire` their bytes and frames,
for both ends. Nothing of `kgroup.protocol` is used: the two share no message.
"""
