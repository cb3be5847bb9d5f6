"""The exam: incidents with real clients, their truth written down, and what each command says of them.

`truth.py` is how a truth is written, `scene.py` what can happen in an incident, a module per family has the
incidents, `playing.py` plays them and marks the answers; `known.py` names the answers that are not right yet.
"""
