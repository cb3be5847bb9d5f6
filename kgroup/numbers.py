"""Whole numbers as people write them: on the command line, in settings and in CSV."""

import re

from kgroup.errors import ConfigError

INT32_MAX, INT64_MAX = 2**31 - 1, 2**63 - 1
_WHOLE = re.compile(
    r"[-+]?[0-9]{1,40}"
)  # int() also takes underscores, blanks and the digits of other scripts


def whole_number(text: str, what: str, *, least: int = 0, most: int = INT64_MAX) -> int:
    """Return the number that `what` was given: a sign and ASCII digits. Raise ConfigError for other text."""
    if not _WHOLE.fullmatch(text):
        raise ConfigError(f"{what}: {text!r} is not a whole number", "digits only, as in 1000")
    number = int(text)
    if number < least:
        raise ConfigError(f"{what}: {text} is below {least}")
    if number > most:
        raise ConfigError(f"{what}: {text} is above {most}")
    return number


def is_whole(text: str) -> bool:
    """Return whether `whole_number` reads this text, bounds aside, and it has no sign."""
    return bool(_WHOLE.fullmatch(text)) and text[0] not in "+-"
