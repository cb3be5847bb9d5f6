"""Bytes and messages of the coordinator of the ZooKeeper era, which no released Kafka implements.

`messages` are the values, with their own keys and error codes; `codec.Wire` encodes and frames them, for both
ends. Nothing of `kgroup.protocol` is used: the two share no message.
"""
