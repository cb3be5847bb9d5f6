"""What replay refuses to believe."""


class InconsistentLog(Exception):
    """Records that contradict each other, such as a partition with two owners at one epoch."""
