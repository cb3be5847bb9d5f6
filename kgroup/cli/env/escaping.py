"""Names from a cluster as text that can be shown: no control character of theirs reaches a terminal."""


def clean(text: str) -> str:
    """`text` with every character that is not printable written as a Python escape."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
