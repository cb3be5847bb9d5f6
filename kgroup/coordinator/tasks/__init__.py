"""Assignment of a streams application's tasks: Kafka's assignor `sticky`, pure (KIP-1071).

As `assignors` for partitions: values in, values out, nothing of groups, records or time. `java_order` has the
orders by which Kafka breaks ties. Entry point: `sticky.assign`.
"""
