"""Who gets which tasks of a streams application: Kafka's assignor `sticky`, pure (KIP-1071).

As `assignors` is for partitions: values in, values out, nothing of groups, records or time. `java_order`
has the orders by which Kafka breaks ties. Entrance: `sticky.assign`.
"""
