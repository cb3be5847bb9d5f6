"""What replay rejects."""


class InconsistentLog(Exception):
    """Records that contradict each other, such as a partition with two owners at one epoch."""
