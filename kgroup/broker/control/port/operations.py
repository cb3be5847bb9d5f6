"""The operations of the control port: derived from the verbs, their annotations and their docstrings."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from types import NoneType
from typing import Annotated, Literal, TypeAlias, get_args, get_origin, get_type_hints

from kgroup.broker.control.brokers import Brokers
from kgroup.broker.control.control import Control
from kgroup.broker.control.declaring import NotThere
from kgroup.broker.control.port.faults import FaultVerbs, Rules
from kgroup.errors import ConfigError

Fields: TypeAlias = Mapping[str, object]
Answer: TypeAlias = dict[str, object]
TEXT, NUMBER, FLAG, RULES = "string", "integer", "boolean", "rules"
Run: TypeAlias = Callable[[Control, Fields], Coroutine[None, None, Answer]]
KINDS: Mapping[str, type] = {TEXT: str, NUMBER: int, FLAG: bool, RULES: list}
_KIND_OF: Mapping[object, str] = {**{kind: name for name, kind in KINDS.items()}, Rules: RULES}
_PART = re.compile(r"{(\w+)}")


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a request's body, or a part of its path."""

    kind: str
    says: str
    default: object = None
    needed: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """A request; `{name}` in its path is a field, too. `returns` has the fields of its answer, by type."""

    method: str
    path: str
    says: str
    run: Run
    returns: Mapping[str, str]
    fields: Mapping[str, Field]

    @property
    def in_path(self) -> list[str]:
        """The fields that are parts of the path."""
        return _PART.findall(self.path)


def _operations(of: type, owner: Callable[[Control], object]) -> Iterator[Operation]:
    """Yield the operations of a class's verbs, in the order of the class; `owner` returns its instance."""
    for name, function in vars(of).items():
        if (request := getattr(function, "request", None)) is not None:
            hints = get_type_hints(function, include_extras=True)
            returns = {field: _kind(hint) for field, hint in get_type_hints(hints["return"]).items()}
            fields = {
                parameter.name: _field(hints[parameter.name], parameter.default)
                for parameter in inspect.signature(function).parameters.values()
                if parameter.name != "self"
            }
            says = inspect.cleandoc(function.__doc__ or "").partition("\n")[0]
            run = _run(owner, name, _PART.findall(request.path))
            yield Operation(request.method, request.path, says, run, returns, fields)


def _run(owner: Callable[[Control], object], name: str, in_path: list[str]) -> Run:
    async def run(control: Control, given: Fields) -> Answer:
        try:
            answer = getattr(owner(control), name)(**given)
            if inspect.isawaitable(answer):
                answer = await answer
        except NotThere as error:
            if error.field in in_path:
                raise
            raise ConfigError(error.message, error.hint) from None
        await asyncio.sleep(0)  # connections that were ended are gone
        return dict(answer)

    return run


def _field(hint: object, default: object) -> Field:
    assert get_origin(hint) is Annotated
    kind, says = get_args(hint)
    needed = default is inspect.Parameter.empty
    return Field(_kind(kind), says, None if needed else default, needed)


def _kind(hint: object) -> str:
    """Return the type in JSON of an annotated type; a duration is a text."""
    if get_origin(hint) is Literal:
        return TEXT
    if hint in _KIND_OF:
        return _KIND_OF[hint]
    (only,) = set(get_args(hint)) - {NoneType, timedelta}
    return _KIND_OF[only]


OPERATIONS = (
    *_operations(Control, lambda control: control),
    *_operations(Brokers, lambda control: control.brokers),
    *_operations(FaultVerbs, FaultVerbs),
)
