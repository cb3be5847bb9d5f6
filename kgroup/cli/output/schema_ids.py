"""The name and version of the document a command prints with `-o json`."""

_SECOND = frozenset({"describe", "replay-log"})
"""Their `assignment_epoch` of a partition had the name of a group's: it is `assigned_epoch` now."""


def schema_id(command: str) -> str:
    """Return the envelope's `schema` of a command, by its full name ("context list")."""
    return f"kgroup/{command.replace(' ', '-')}@{2 if command in _SECOND else 1}"
