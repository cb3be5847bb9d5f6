"""From the name in a certificate to the name of a principal: `ssl.principal.mapping.rules` (KIP-371)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

DEFAULT_RULES = "DEFAULT"
_PART = r"(?:\\.|[^\\/])*"
_RULE = re.compile(
    rf"\s*(?:(?P<default>DEFAULT)|RULE:(?P<pattern>{_PART})/(?P<replacement>{_PART})/(?P<case>[LU]?))?\s*"
    r"(?:,\s*|$)",
    re.DOTALL,
)
_REFERENCE = re.compile(r"\\(.)|\$(\d+)", re.DOTALL)


class Compiled(Protocol):
    """A compiled pattern with groups."""

    groups: int

    def fullmatch(self, text: str) -> re.Match[str] | None: ...

    def finditer(self, text: str) -> list[re.Match[str]]: ...


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; without a pattern it is DEFAULT."""

    pattern: Compiled | None = None
    replacement: str = ""
    case: str = ""

    def apply(self, name: str) -> str | None:
        """Return the mapped name; None if the rule does not match as a whole."""
        if self.pattern is None:
            return name
        if self.pattern.fullmatch(name) is None:
            return None
        made, at = "", 0
        for match in self.pattern.finditer(name):  # replaceAll, which Kafka calls, goes on behind the first
            made += name[at : match.start()] + self._replaced(match)
            at = match.end()
        made += name[at:]
        return made.lower() if self.case == "L" else made.upper() if self.case == "U" else made

    def _replaced(self, match: re.Match[str]) -> str:
        assert self.pattern is not None
        groups = self.pattern.groups

        def of(reference: re.Match[str]) -> str:
            if reference[1] is not None:
                return reference[1]
            digits, rest = reference[2], ""
            while len(digits) > 1 and int(digits) > groups:
                digits, rest = digits[:-1], digits[-1] + rest
            if int(digits) > groups:
                return f"${digits}{rest}"
            return (match[int(digits)] or "") + rest

        return _REFERENCE.sub(of, self.replacement)


class PrincipalMapping:
    """The rules in their order, the first that matches decides; ValueError for an invalid text."""

    def __init__(self, text: str = DEFAULT_RULES) -> None:
        text = text.strip() or DEFAULT_RULES
        rules, pos = [], 0
        while pos < len(text):
            match = _RULE.match(text, pos)
            if match is None or match.end() == pos:
                raise ValueError(f"{text[pos:]!r} is neither DEFAULT nor RULE:pattern/replacement/[L|U]")
            pos = match.end()
            if match["default"]:
                rules.append(Rule())
            elif match["pattern"] is not None:
                import re2

                options = re2.Options()
                options.log_errors = False
                try:
                    pattern: Compiled = re2.compile(match["pattern"], options)
                except re2.error as error:
                    said = error.args[0] if error.args else error
                    why = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
                    raise ValueError(f"{match['pattern']!r} is no pattern: {why}") from None
                rules.append(Rule(pattern, match["replacement"], match["case"]))
        self.rules = tuple(rules)

    def name_of(self, distinguished_name: str) -> str | None:
        """Return the principal's name, or None if no rule applies: the connection is then refused."""
        for rule in self.rules:
            made = rule.apply(distinguished_name)
            if made is not None:
                return made
        return None
