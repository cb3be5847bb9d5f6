"""What Windows does otherwise than POSIX: locks on files, descriptors, line ends.

Locks are no library's: on Windows those of filelock and portalocker keep the file's first bytes from being
read, where it names its owner.
"""

import contextlib
import errno
import os
import sys
import time

if sys.platform == "win32":
    import msvcrt

    BINARY = os.O_BINARY  # without it, other line ends are written than were given
    MOST_CONNECTIONS = 480  # an event loop there has at most 512 sockets
    _FAR = 1 << 30  # others cannot read the bytes that are locked
    _TRIES = 5  # no lock is shared there: a process that only looks has it for an instant
    _PAUSE_S = 0.01

    def lock(descriptor: int, *, shared: bool = False, wait: bool = False) -> None:
        """Lock a file until it is closed; BlockingIOError if another has it and this should not `wait`."""
        at, left = os.lseek(descriptor, 0, os.SEEK_CUR), _TRIES
        try:
            while True:
                os.lseek(descriptor, _FAR, os.SEEK_SET)
                try:
                    return msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
                except PermissionError:
                    left -= not wait
                if not left:
                    raise BlockingIOError(errno.EAGAIN, "another process has locked it")
                time.sleep(_PAUSE_S)
        finally:
            os.lseek(descriptor, at, os.SEEK_SET)

    def read_at(descriptor: int, size: int, position: int) -> bytes:
        """Return what a file has from a position on, at most this many bytes."""
        os.lseek(descriptor, position, os.SEEK_SET)
        return os.read(descriptor, size)

    def raise_file_limit() -> None:
        """Leave the limit as it is: there is one."""

    def file_limit() -> int:
        """Return how many descriptors a process may have."""
        return 8192

else:
    import fcntl
    import resource

    BINARY = 0
    MOST_CONNECTIONS = sys.maxsize

    def lock(descriptor: int, *, shared: bool = False, wait: bool = False) -> None:
        """Lock a file until it is closed; BlockingIOError if another has it and this should not `wait`."""
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        fcntl.flock(descriptor, kind if wait else kind | fcntl.LOCK_NB)

    read_at = os.pread

    def raise_file_limit() -> None:
        """Let this process open as many files as the system allows it (the hard limit), as Java does."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != hard:
            # some systems refuse what they call their hard limit
            with contextlib.suppress(OSError, ValueError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    def file_limit() -> int:
        """Return how many descriptors this process may have; numbered from 0, the lowest free one is next."""
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return 1 << 31 if limit == resource.RLIM_INFINITY else limit
