"""Building blocks of the schemas. Objects allow further fields: fields only get added within a version."""

from typing import TypeAlias

from kgroup.domain import Document

Schema: TypeAlias = Document

STRING: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
BOOLEAN: Schema = {"type": "boolean"}
OBJECT: Schema = {"type": "object"}


def nullable(schema: Schema) -> Schema:
    """Return `schema`, or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def array(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def note(schema: Schema, words: str) -> Schema:
    """Return `schema` with its meaning."""
    return {**schema, "description": words}


def each(schema: Schema, names: str) -> dict[str, Schema]:
    """Return fields of one type, by their names with blanks between."""
    return dict.fromkeys(names.split(), schema)


def one_of(*values: str) -> Schema:
    """Return the schema of one of these strings."""
    return {"enum": list(values)}


def record(**fields: Schema) -> Schema:
    """Return an object that has all these fields, and may have more."""
    return {"type": "object", "properties": fields, "required": list(fields)}


CHANGED: dict[str, Schema] = {"executed": BOOLEAN, "journal_id": nullable(STRING)}
"""What `views.changes` prints of every planned or executed change."""
