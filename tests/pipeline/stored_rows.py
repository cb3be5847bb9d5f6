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


def without_runs(store: Store, table: str) -> list[dict[str, object]]:
    """The same without the numbers of the runs that wrote them."""
    found = rows(store, table)
    return sorted(({n: v for n, v in row.items() if n != "run"} for row in found), key=repr)


def check_same_but_runs(one: Store, other: Store) -> None:
    """Fails unless two stores hold the same rows, whichever runs wrote them."""
    for table in TABLES:
        assert without_runs(one, table) == without_runs(other, table), table
    assert rows(one, "events")
