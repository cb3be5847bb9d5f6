"""The generated exam: states of a consumer group from independent dimensions, and what every command says.

`states.py` has the dimensions, `machine.py` the embedded cluster with its moved time, `playing.py` puts a state
together, `truth.py` says what is true of it, `asking.py` calls the commands, `judging.py` compares. Nothing here
knows how kgroup judges: truth and commands share the cluster only.
"""
