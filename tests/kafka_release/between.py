"""What one release of Kafka declares otherwise than an earlier one, a line each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .release import Release
from .wire import Spec, changes, theirs, versions


def differences_between(old: Release, new: Release) -> Iterator[str]:
    """Yield APIs by key, then records, errors, features and settings."""
    for key in sorted(old.requests.keys() | new.requests.keys()):
        before, after = old.requests.get(key, ()), new.requests.get(key, ())
        if before and after:
            for was, now in zip(before, after, strict=True):
                yield from _messages(was, now)
        else:
            request = (before or after)[0]
            what = f"new, versions {request['validVersions']}" if after else "gone"
            yield f"API {key} {request['name'].removesuffix('Request')}: {what}"
    for name in sorted(old.records.keys() | new.records.keys()):
        if name in old.records and name in new.records:
            yield from _messages(old.records[name], new.records[name])
        else:
            yield f"record {name}: {'new' if name in new.records else 'gone'}"
    for kind, declared in new.declared.items():
        yield from _values(kind, old.declared[kind], declared)


def _messages(old: Spec, new: Spec) -> Iterator[str]:
    """Each version that differs, a new one from the version before it."""
    had, has = versions(old["validVersions"]), versions(new["validVersions"])
    for version in has:
        before = theirs(old, version) if version in had else theirs(new, version - 1)
        text = changes(before, theirs(new, version))
        if version not in had:
            yield f"{new['name']} v{version}, new: {text or 'the same fields'}"
        elif text:
            yield f"{new['name']} v{version}: {text}"
    for version in set(had) - set(has):
        yield f"{new['name']} v{version}: gone"


def _values(kind: str, old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    for name in dict.fromkeys([*new, *old]):
        if name not in new:
            yield f"{kind} {name}: gone"
        elif name not in old:
            yield f"{kind} {name}: new, {new[name].strip() or 'empty'}"
        elif old[name] != new[name]:
            yield f"{kind} {name}: {new[name].strip()}, before {old[name].strip()}"
