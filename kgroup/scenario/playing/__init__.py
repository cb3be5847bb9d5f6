"""Plays a scenario on a running cluster: the course, its actors, and a gate per kind of group."""
