"""A scenario played on a cluster that runs: the course, its actors, the gates of both kinds of groups."""
