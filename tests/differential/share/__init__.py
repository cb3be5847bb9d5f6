"""Kafka's share partition and share coordinator as the judges of ours: made-up programs, step by step.

`java/` plays a program on the classes of Kafka 4.4.0, a SharePartition on a share coordinator; `ours.py`
plays it on ours. `programs.py` makes them up.
"""
