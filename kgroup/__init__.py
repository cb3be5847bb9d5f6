"""kgroup: consumer groups of Kafka, on a real cluster or an embedded one."""

__version__ = "0.1.0"
