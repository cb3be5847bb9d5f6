"""What the requests about settings call by number: resources, sources of a value, and changes of one."""

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
"""The types of resources that have settings (Kafka's ConfigResource.Type)."""
FROM_TOPIC, FROM_BROKER, FROM_ALL_BROKERS, FROM_FILE, FROM_DEFAULT, FROM_GROUP = 1, 2, 3, 4, 5, 8
"""The sources of a value (Kafka's DescribeConfigsResponse.ConfigSource)."""
SET, DELETE, APPEND, SUBTRACT = range(4)
"""The changes of IncrementalAlterConfigs (Kafka's AlterConfigOp.OpType)."""
