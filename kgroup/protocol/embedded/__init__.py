"""What members that are not plain consumers say to each other through their group, in bytes of their own.

Pure functions, bytes → frozen values of plain types (`dataclasses.asdict` is JSON). Bytes that are malformed,
or of a version nobody here knows, come back as an `Undecoded` that says so; no function raises.

- `connect`: the workers of Kafka Connect, eager (version 0) and cooperative (1 and 2: KIP-415, KIP-507)
- `streams`: the user data that Kafka Streams' own assignor puts into the consumer protocol's bytes
- `schema_registry`: the election of a Schema Registry's leader
- `member`: whichever of them a group speaks
"""
