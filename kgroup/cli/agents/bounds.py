"""An answer that fits a client: long lists lose rows, then long texts their ends, and the answer says so."""

import json
from bisect import bisect_right
from collections.abc import Mapping
from typing import Annotated, TypedDict

from kgroup.cli.output.result import visible
from kgroup.domain import Document
from kgroup.errors import ConfigError, KgroupError


class Cut(TypedDict):
    """A list or a text of an answer of which only a part is shown."""

    at: Annotated[str, "its place in the answer"]
    first: Annotated[int, "the first row shown"]
    shown: Annotated[int, "rows of a list, characters of a text"]
    of: int
    message: str


_TEXTS = (4096, 1024, 256, 64)
"""Lengths at which texts are cut, where one row of each list is too long."""


def text_of(answer: Mapping[str, object]) -> str:
    """Return an answer as one line of JSON in which every character is visible."""
    return visible(json.dumps(answer, ensure_ascii=False, separators=(",", ":")))


def bounded(answer: Document, rows: int, most: int, skip: Mapping[str, int]) -> Document:
    """Return an answer of at most `most` bytes and `rows` rows per list; its `cut` says what is not there.

    `skip` are rows to leave out at the start of lists, by their places. Raise ConfigError for a place without
    a list, KgroupError if nothing of the answer fits.
    """

    def fits(part: Document) -> bool:
        return len(text_of(part).encode()) <= most

    whole = _Part(rows, None, skip).of(answer)
    if fits(whole):
        return whole
    few = bisect_right(range(1, rows), False, key=lambda n: not fits(_Part(n, None, skip).of(answer)))
    if few:
        return _Part(few, None, skip).of(answer)
    for longest in _TEXTS:
        part = _Part(1, longest, skip).of(answer)
        if fits(part):
            return part
    raise KgroupError(f"one row has more than {most} bytes", "kgroup mcp --max-bytes N takes more")


class _Part:
    """The part of an answer with so many rows of each list, and so many characters of each text."""

    def __init__(self, rows: int, longest: int | None, skip: Mapping[str, int]) -> None:
        self._rows, self._longest, self._skip = rows, longest, skip
        self._cut: list[Cut] = []
        self._lists: set[str] = set()

    def of(self, answer: Document) -> Document:
        part = {name: self._of(value, name, {}) for name, value in answer.items()}
        unknown = sorted(self._skip.keys() - self._lists)
        if unknown:
            lists = ", ".join(sorted(self._lists, key=lambda at: (at.count("["), at))[:10])
            raise ConfigError(f"skip: the answer has no list {unknown[0]}", f"it has: {lists}")
        return {**part, "cut": self._cut}

    def _of(self, value: object, at: str, above: Mapping[str, int]) -> object:
        """Return the part of a value; `above` has the rows of other lists that it is in."""
        if isinstance(value, Mapping):
            return {str(name): self._of(item, f"{at}.{name}", above) for name, item in value.items()}
        if isinstance(value, list):
            return self._some(value, at, above)
        return self._begun(value, at) if isinstance(value, str) else value

    def _some(self, rows: list[object], at: str, above: Mapping[str, int]) -> list[object]:
        self._lists.add(at)
        first, of = self._skip.get(at, 0), len(rows)
        kept = rows[first : first + self._rows]
        if len(kept) < of:
            after = first + len(kept)
            more = f"; ask for more with skip {json.dumps({**above, at: after})}" if after < of else ""
            said = f"cut: {len(kept)} of {of} rows, from row {first}{more}"
            self._cut.append(Cut(at=at, first=first, shown=len(kept), of=of, message=said))
        return [
            self._of(row, f"{at}[{number}]", {**above, at: number}) for number, row in enumerate(kept, first)
        ]

    def _begun(self, text: str, at: str) -> str:
        # Half of a surrogate pair, which is how Python keeps other bytes than UTF-8, is no text of JSON.
        text = text if text.isascii() else text.encode(errors="backslashreplace").decode()
        if self._longest is None or len(text) <= self._longest:
            return text
        said = f"cut: {self._longest} of {len(text)} characters; kgroup mcp --max-bytes N takes more"
        self._cut.append(Cut(at=at, first=0, shown=self._longest, of=len(text), message=said))
        return text[: self._longest]
