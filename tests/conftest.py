"""What all tests start from."""

import signal


def pytest_configure() -> None:
    """A shell that runs us in the background has us ignore Ctrl-C, and the processes under test with us."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
