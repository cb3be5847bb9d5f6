"""A scenario played on a cluster that runs: the course, its `actors`, and the gate of `classic` groups."""
