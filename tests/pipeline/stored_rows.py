"""The rows of a table, to be compared with those of another store."""

from kgroup.pipeline.schemas import TABLES
from kgroup.pipeline.tables.store import Store, number_in


def rows(store: Store, table: str) -> list[dict[str, object]]:
    """All rows of a table with their partition, without where they were read from."""
    found = [
        {**row, "part": number_in(name, "part"), "source": None}
        for name in store.names(table)
        for row in store.read(name).to_pylist()
    ]
    return sorted(found, key=repr)


def check_same(one: Store, other: Store) -> None:
    """Fails unless two stores hold the same rows in every table, and more than nothing."""
    for table in TABLES:
        assert rows(one, table) == rows(other, table), table
    assert all(rows(one, table) for table in ("commits", "events", "batches"))
