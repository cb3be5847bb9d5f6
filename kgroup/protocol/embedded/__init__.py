"""What members that are not plain consumers send each other through their group, in bytes of their own.

Pure functions, bytes → frozen values of plain types (`dataclasses.asdict` is JSON). Malformed bytes, or
bytes of an unknown version, are returned as an `Undecoded` with the reason; no function raises.

- `connect`: the workers of Kafka Connect, eager (version 0) and cooperative (1 and 2: KIP-415, KIP-507)
- `streams`: the user data that Kafka Streams' own assignor puts into the consumer protocol's bytes
- `schema_registry`: the election of a Schema Registry's leader
- `member`: the one of them that a group uses
"""
