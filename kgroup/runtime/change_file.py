"""The catalog's file: a line with the whole state, then one line for each change since.

A line is a checksum, a space and JSON. The JSON has the line's number `n`, one more than that of the line
before, also when that has been rewritten. A change is one write and one fsync, however large the state. When
the changes are as long as the first line, one line with the whole state replaces the file in a rename.

A kill or a power loss can leave only the last change incomplete: without its newline, or with zeros where a
block never reached the disk. Those bytes are cut off and kept. Any other line that is not as it was written
is damage: the file is refused and not changed.
"""

import contextlib
import json
import os
import re
import zlib
from collections.abc import Callable
from pathlib import Path

from kgroup.log.files import keep_rest, replace_file
from kgroup.log.interface import TornTail
from kgroup.portable import BINARY
from kgroup.runtime.placement import Noted

SHORT = 1 << 18
"""Changes of fewer bytes than this are not worth a rewrite."""
_PREFIX = len("01234567 ")
_STARTS = re.compile(rb"[0-9a-f]{8} \{")


class ChangeFile:
    """The file at `path`. `torn_tail` says what `read` cut off."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._number = 0
        self._size = 0
        self._first_size = 0
        self._rewrite_next = True
        self.torn_tail: TornTail | None = None

    def read(self) -> list[Noted]:
        """Return the state, then the changes in order; ValueError for damage, OSError."""
        raw = self.path.read_bytes()
        changes: list[Noted] = []
        at = 0
        while at < len(raw):
            end = raw.find(b"\n", at) + 1 or len(raw)
            line = _parsed(raw[at:end])
            if line is None:
                rest = raw[at:]
                # A whole line behind the first byte: what precedes it was complete once.
                starts = (match.start() for match in _STARTS.finditer(rest, 1))
                whole = (_parsed(rest[start:].partition(b"\n")[0]) is not None for start in starts)
                incomplete = not rest.endswith(b"\n") or b"\0" in rest
                if not changes or not incomplete or any(whole):
                    raise ValueError(f"the checksum of the line at byte {at} is wrong")
                kept = keep_rest(self.path, at, f"{self.path.name}-cut-at-byte-{at}")
                reason = "the last change is incomplete"
                self.torn_tail = TornTail(self.path, at, len(rest), reason, kept)
                break
            if changes and line["n"] != changes[-1]["n"] + 1:
                raise ValueError(f"change {line['n']} at byte {at} follows change {changes[-1]['n']}")
            changes.append(line)
            self._first_size = self._first_size or end
            at = end
        if not changes:
            raise ValueError("it is empty")
        self._number, self._size = changes[-1]["n"], at
        self._rewrite_next = not raw.endswith(b"\n") or self.torn_tail is not None
        return changes

    def append(self, change: Noted, everything: Callable[[], Noted]) -> None:
        """Make a change durable; `everything` includes it. OSError if that failed: nothing is changed."""
        if self._rewrite_next or self._size >= 2 * max(self._first_size, SHORT) or not self._is_as_left():
            self.rewrite(everything())
            return
        line = _line({"n": self._number + 1, **change})
        fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | BINARY)
        try:
            written = os.write(fd, line)
            while written < len(line):
                written += os.write(fd, line[written:])
            os.fsync(fd)
        except OSError:
            self._rewrite_next = True  # after a failed fsync the content on disk is unknown
            with contextlib.suppress(OSError):
                os.ftruncate(fd, self._size)
            raise
        finally:
            os.close(fd)
        self._number += 1
        self._size += len(line)

    def rewrite(self, everything: Noted) -> None:
        """Replace the file by one line with the whole state; OSError."""
        line = _line({"n": self._number + 1, **everything})
        self._rewrite_next = True
        replace_file(self.path, line)
        self._rewrite_next = False
        self._number += 1
        self._size = self._first_size = len(line)

    def shorten(self, everything: Callable[[], Noted]) -> None:
        """Leave one line with the whole state: if a part of it is missing later, that is noticed. OSError."""
        if self._rewrite_next or self._size > self._first_size:
            self.rewrite(everything())

    def _is_as_left(self) -> bool:
        try:
            return self.path.stat().st_size == self._size
        except FileNotFoundError:
            return False


def _line(content: Noted) -> bytes:
    body = json.dumps(content, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(body), body)


def _parsed(line: bytes) -> Noted | None:
    """Return a line's content, None if it is not as it was written; the newline may be missing."""
    body = line[_PREFIX:].removesuffix(b"\n")
    if line[:_PREFIX] != b"%08x " % zlib.crc32(body):
        return None
    noted: Noted = json.loads(body)
    return noted
