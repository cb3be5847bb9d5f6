"""Faults on demand: rules that have a broker answer wrong, late or not at all.

`rules` is what a test writes, in the JSON fields of kfake (`kcl fake --control`) and some of our own; `sites`
what of a request a rule can select; `installed` the rules in force, what they did, and when; `answers` how a
request is served of which some fails.
"""
