"""The Python driver: librdkafka, kafka-python and aiokafka consumers in one process."""
