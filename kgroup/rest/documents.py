"""Documents of the REST API v3: fields by their names in its OpenAPI document, each checked for its type."""

from collections.abc import Mapping
from dataclasses import dataclass

from kgroup.errors import KgroupError


@dataclass(frozen=True, slots=True)
class Document:
    """One JSON object and its URL; a field that differs from the API's definition raises KgroupError."""

    value: object
    url: str

    def text(self, name: str) -> str:
        """Return a string that the API requires."""
        value = self._fields().get(name)
        if not isinstance(value, str):
            raise self._not(name, "a string")
        return value

    def text_or_none(self, name: str) -> str | None:
        """Return a string; None for null and for a missing field."""
        return None if self._fields().get(name) is None else self.text(name)

    def number(self, name: str) -> int:
        """Return an integer that the API requires."""
        value = self._fields().get(name)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._not(name, "an integer")
        return value

    def truth(self, name: str) -> bool | None:
        """Return a boolean; None where it is missing."""
        value = self._fields().get(name)
        return value if isinstance(value, bool) else None

    def has(self, name: str) -> bool:
        """Return whether the field exists, even if null."""
        return name in self._fields()

    def related(self, name: str) -> str | None:
        """Return the URL of a relationship; None where there is none."""
        value = self._fields().get(name)
        url = value.get("related") if isinstance(value, dict) else None
        return url if isinstance(url, str) else None

    def _fields(self) -> Mapping[str, object]:
        if not isinstance(self.value, dict):
            raise KgroupError(f"{self.url} holds something that is not an object", "is it a REST API v3?")
        return self.value

    def _not(self, name: str, kind: str) -> KgroupError:
        return KgroupError(f"{self.url}: {name} is not {kind}", "is it a REST API v3?")


def page_of(value: object, url: str) -> tuple[list[Document], str | None]:
    """Return the documents of a page of a collection, and the URL of the next page; None after the last."""
    page = value if isinstance(value, dict) else {}
    data, metadata = page.get("data"), page.get("metadata")
    if not isinstance(data, list) or not isinstance(metadata, dict):
        raise KgroupError(f"{url} is not a collection of the REST API v3", "is it the address of one?")
    following = metadata.get("next")
    return [Document(item, url) for item in data], following if isinstance(
        following, str
    ) and following else None


def error_of(value: object) -> tuple[int | None, str | None]:
    """Return `error_code` and `message` of a failure, where present."""
    document = value if isinstance(value, dict) else {}
    code, message = document.get("error_code"), document.get("message")
    return code if isinstance(code, int) else None, message if isinstance(message, str) else None
