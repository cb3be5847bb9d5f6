"""Faults on demand: rules that make a broker answer wrong, late or not at all.

`rules` is what a test writes, in the JSON fields of kfake (`kcl fake --control`) and some of our own; `sites`
the parts of a request that a rule can select; `installed` the rules in force, what they did, and when;
`answers` serves a request of which some entries fail.
"""
