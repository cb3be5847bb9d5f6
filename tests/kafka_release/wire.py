"""The fields of a message on the wire: as the JSON in Kafka's jars declares them, and as our classes do."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kgroup.protocol.codec import NEVER_FLEXIBLE, Message, Struct
from kgroup.protocol.shapes import Shape, slots_of

PRIVATE_TAGS = 10_000
MOST = 1 << 15
KINDS = {
    "?": "bool",
    "b": "int8",
    "h": "int16",
    "H": "uint16",
    "i": "int32",
    "I": "uint32",
    "q": "int64",
    "d": "float64",
}
Spec = dict[str, Any]


class Wire(NamedTuple):
    """A field in one version: how deep it stands, what it is, and what a tag left out stands for."""

    name: str
    depth: int
    kind: str
    nullable: bool = False
    tag: int | None = None
    default: str = ""

    def same(self, other: Wire) -> bool:
        """Whether the bytes are the same; the two may have different names."""
        return self[1:] == other[1:]

    def __str__(self) -> str:
        tagged = "" if self.tag is None else f", tag {self.tag}, default {self.default}"
        return f"{self.name} ({self.kind}{' or null' if self.nullable else ''}{tagged})"


def specs(jars: Path, jar: str) -> dict[str, Spec]:
    """The messages that a jar declares, by name, each with the text of its JSON read."""
    [found] = jars.glob(f"{jar}-[0-9]*.jar")
    with zipfile.ZipFile(found) as archive:
        names = [name for name in archive.namelist() if re.fullmatch(r"common/message/\w+\.json", name)]
        texts = [re.sub(r"(?m)^\s*//.*$", "", archive.read(name).decode()) for name in names]
    # Some of old releases have a brace too many at their end.
    read = [json.JSONDecoder().raw_decode(text.lstrip())[0] for text in texts]
    return {spec["name"]: spec for spec in read}


def versions(text: str) -> range:
    """The versions that `0-3`, `2+`, `1` or `none` stands for."""
    if text == "none":
        return range(0)
    first, dash, last = text.removesuffix("+").partition("-")
    return range(int(first), MOST if text.endswith("+") else int(last if dash else first) + 1)


def theirs(spec: Spec, version: int) -> list[Wire]:
    """A message's fields in a version, in wire order, those in the tag section last."""
    common = {struct["name"]: struct["fields"] for struct in spec.get("commonStructs", ())}
    return list(_theirs(spec["fields"], version, common, 0))


def _theirs(declared: list[Spec], version: int, common: Mapping[str, Any], depth: int) -> Iterator[Wire]:
    there = [field for field in declared if version in versions(field.get("versions", "0+"))]
    tags = {
        field["name"]: field["tag"]
        for field in there
        if "tag" in field and version in versions(field["taggedVersions"])
    }
    for field in sorted(there, key=lambda field: tags.get(field["name"], -1)):
        item = field["type"].removeprefix("[]")
        nested = field.get("fields") or common.get(item)
        kind = field["type"].replace(item, "struct") if nested else field["type"]
        nullable = version in versions(field.get("nullableVersions", "none"))
        tag = tags.get(field["name"])
        default = "" if tag is None else _default(field, kind)
        yield Wire(field["name"], depth, kind.replace("records", "bytes"), nullable, tag, default)
        if nested:
            yield from _theirs(nested, version, common, depth + 1)


def _default(field: Spec, kind: str) -> str:
    # A null of JSON is no default; the text "null" is one.
    text = str(field.get("default") or "").lower()
    if kind.startswith("[]") or kind in ("string", "bytes", "struct", "uuid"):
        return text
    return (
        str(int(text, 0))
        if re.fullmatch(r"-?(0x)?[0-9a-f]+", text)
        else text or {"bool": "false"}.get(kind, "0")
    )


def ours(cls: type[Message], version: int) -> list[Wire]:
    """The same of one of our classes; fields that no Kafka has are left out."""
    return list(_ours(cls, version, version >= cls.FLEXIBLE, 0))


def _ours(cls: type[Struct], version: int, flexible: bool, depth: int) -> Iterator[Wire]:
    there = [slot for slot in slots_of(cls) if slot.since <= version <= slot.until]
    there = [slot for slot in there if slot.tag is None or (flexible and slot.tag < PRIVATE_TAGS)]
    for slot in sorted(there, key=lambda slot: -1 if slot.tag is None else slot.tag):
        kind, struct = _kind(slot.shape)
        nullable = slot.shape.nullable and version >= slot.nullable_since
        default = "" if slot.tag is None else _text(slot.default)
        yield Wire(slot.name, depth, kind, nullable, slot.tag, default)
        if struct is not None:
            yield from _ours(struct, version, flexible, depth + 1)


def _kind(shape: Shape) -> tuple[str, type[Struct] | None]:
    if shape.kind == "array":
        assert shape.item is not None
        kind, struct = _kind(shape.item)
        return f"[]{kind}", struct
    return KINDS.get(shape.code, shape.kind), shape.struct


def _text(default: Any) -> str:
    if default is None:
        return "null"
    return "" if default in ("", b"", (), bytes(16)) or isinstance(default, Struct) else str(default).lower()


def flexible_from(spec: Spec) -> int:
    """The first version with a tag section."""
    found = versions(spec["flexibleVersions"])
    return found[0] if found else NEVER_FLEXIBLE


def differences(spec: Spec, cls: type[Message]) -> Iterator[str]:
    """How our class differs in the versions that both have."""
    shared = [version for version in versions(spec["validVersions"]) if version in cls.VERSIONS]
    if (
        shared
        and flexible_from(spec) != cls.FLEXIBLE
        and min(flexible_from(spec), cls.FLEXIBLE) <= shared[-1]
    ):
        yield f"{spec['name']}: flexible from {flexible_from(spec)}, here from {cls.FLEXIBLE}"
    for version in shared:
        declared, known = theirs(spec, version), ours(cls, version)
        for at in range(max(len(declared), len(known))):
            one, other = (fields[at] if at < len(fields) else None for fields in (declared, known))
            if one is None or other is None or not one.same(other):
                yield f"{spec['name']} v{version}: {one or 'nothing'}, here {other or 'nothing'}"
                break


def added(spec: Spec, last: int) -> Iterator[str]:
    """What each version behind `last` adds to the one before, and takes away."""
    for version in versions(spec["validVersions"]):
        if version > last:
            text = changes(theirs(spec, version - 1), theirs(spec, version))
            yield f"{spec['name']} v{version}: {text or 'the same fields'}"


def changes(before: Sequence[Wire], after: Sequence[Wire]) -> str:
    """Fields that are new, without those in a new one, and those that are gone; "" for the same bytes."""
    if len(before) == len(after) and all(map(Wire.same, before, after)):
        return ""
    new: list[Wire] = []
    inside = MOST
    for field in after:
        if field.depth > inside:
            continue
        inside = MOST if field in before else field.depth
        if field not in before:
            new.append(field)
    return ", ".join([*map(str, new), *(f"without {field.name}" for field in before if field not in after)])
