"""Kafka tests of other projects, on a real Kafka and on kgroup: `make outside ARGS=../quix-streams`."""
