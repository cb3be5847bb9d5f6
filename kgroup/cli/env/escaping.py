"""Names from a cluster as printable text: none of their control characters reaches a terminal."""


def clean(text: str) -> str:
    """Return `text` with every character that is not printable written as a Python escape."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
