"""Modules that serving needs and other commands do not, imported before the first request.

An import opens files. During a request the descriptors may be used up, or the disk gone.
"""

from __future__ import annotations

from importlib import import_module

NEEDED = (
    "cramjam",
    "difflib",
    "encodings.utf_16_be",
    "encodings.utf_16_le",
    "kgroup.log.compaction",
    "kgroup.log.partition",
    "kgroup.protocol.compiler",
    "re2",
)


def import_all() -> None:
    """Import what handlers, coordinators and logs otherwise import where they use it."""
    for name in NEEDED:
        import_module(name)
