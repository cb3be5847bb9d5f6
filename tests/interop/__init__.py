"""The same cases with real clients against a real Apache Kafka and against kgroup's own broker."""
