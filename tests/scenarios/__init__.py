"""Tables of who does what and what is answered, run on the bare machine, in process, on TCP, on Kafka."""
