"""Kafka's group coordinator as the judge of ours: made-up programs, compared after every operation.

`java/` plays a program on Kafka 4.3.1's published jars and writes what happened; `player.py` plays the same
on our Coordinator. What may differ is in `allowed.py`, each entry with its reason.
"""
