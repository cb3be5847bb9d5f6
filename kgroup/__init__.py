"""kgroup: consumer groups of Kafka, on a real cluster or an embedded one."""
