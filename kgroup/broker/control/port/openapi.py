"""The OpenAPI document of the control port, from the table of its operations."""

from __future__ import annotations

import re
from dataclasses import fields

from kgroup.broker.control.faults.rules import Rule
from kgroup.broker.control.port.operations import FLAG, NUMBER, OPERATIONS, RULES, TEXT, Operation
from kgroup.protocol.anatomy import Entry

ERRORS = {
    "400": "The request is invalid; `hint` says what would be valid.",
    "401": "The token is missing or wrong.",
    "404": "What the path names does not exist.",
    "408": "The wait timed out.",
    "409": "It cannot be done now.",
    "413": "The body is longer than 1 MiB, or has no Content-Length.",
    "500": "The server failed; its log says how.",
    "503": "The server stops.",
}


def document() -> dict[str, Entry]:
    """Return the document, as JSON has it."""
    paths: dict[str, dict[str, Entry]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    error = {
        "type": "object",
        "required": ["error"],
        "properties": {"error": {"type": TEXT}, "hint": {"type": TEXT}, "usage": {"type": FLAG}},
    }
    types = {
        "str": {"type": TEXT},
        "int": {"type": NUMBER},
        "int | None": {"type": NUMBER},
        "bool": {"type": FLAG},
        "tuple[str, ...]": {"type": "array", "items": {"type": TEXT}},
        "tuple[int, ...]": {"type": "array", "items": {"type": NUMBER}},
    }
    properties = {field.name: types[str(field.type)] for field in fields(Rule)}
    rule = {"type": "object", "additionalProperties": False, "properties": properties}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "kgroup serve --control",
            "version": "1",
            "description": "Control of a running cluster for tests. `kgroup docs testing` says more.",
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Error": error, "Rule": rule},
        },
    }


def _operation(operation: Operation) -> dict[str, Entry]:
    in_path = operation.in_path
    body = {name: field for name, field in operation.fields.items() if name not in in_path}
    described: dict[str, Entry] = {
        "operationId": re.sub(r"\W+", "_", f"{operation.method.lower()}{operation.path}").strip("_"),
        "summary": operation.says,
        "responses": {
            "200": _content(
                "Done.",
                {
                    "type": "object",
                    "required": [*operation.returns],
                    "properties": {name: _type(kind) for name, kind in operation.returns.items()},
                },
            ),
            **{code: _content(says, {"$ref": "#/components/schemas/Error"}) for code, says in ERRORS.items()},
        },
    }
    if in_path:
        described["parameters"] = [
            {
                "name": name,
                "in": "path",
                "required": True,
                "description": operation.fields[name].says,
                "schema": {"type": operation.fields[name].kind},
            }
            for name in in_path
        ]
    if body:
        properties = {}
        for name, field in body.items():
            schema = _type(field.kind, rules="#/components/schemas/Rule") | {"description": field.says}
            properties[name] = schema if field.default is None else schema | {"default": field.default}
        shape = {"type": "object", "additionalProperties": False, "properties": properties}
        needed = [name for name, field in body.items() if field.needed]
        described["requestBody"] = {
            "required": bool(needed),
            "content": {"application/json": {"schema": shape | ({"required": needed} if needed else {})}},
        }
    return described


def _content(says: str, schema: dict[str, Entry]) -> dict[str, Entry]:
    return {"description": says, "content": {"application/json": {"schema": schema}}}


def _type(kind: str, rules: str = "") -> dict[str, Entry]:
    if kind != RULES:
        return {"type": kind}
    return {"type": "array", "items": {"$ref": rules} if rules else {"type": "object"}}
