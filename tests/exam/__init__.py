"""The generated exam: states of a consumer group from independent dimensions, and what every command says.

`states.py` has the dimensions, `machine.py` the embedded cluster with its moved time, `playing.py` puts a
state together, `truth.py` computes what is true of it, `asking.py` calls the commands, `judging.py` compares.
`playing_real.py` plays the same states on a real Kafka (`real_machine.py`) with real clients, `on_kafka.py`
chooses a sample of them.
The truth comes from what was played: it shares the cluster with the commands, and no code.
"""
