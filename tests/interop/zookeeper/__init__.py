"""Groups of Kafka's ZooKeeper era: real ensembles, brokers and consumers of that age."""
