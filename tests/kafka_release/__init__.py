"""What a release of Kafka declares, beside what kgroup knows: `make kafka-release KAFKA=4.4.0`."""
