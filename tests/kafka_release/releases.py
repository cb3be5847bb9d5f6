"""The last release of each minor one of Kafka."""

LAST = {
    release.rpartition(".")[0]: release
    for release in (
        "2.3.1",
        "2.4.1",
        "2.5.1",
        "2.6.3",
        "2.7.2",
        "2.8.2",
        "3.0.2",
        "3.1.2",
        "3.2.3",
        "3.3.2",
        "3.4.1",
        "3.5.2",
        "3.6.2",
        "3.7.2",
        "3.8.1",
        "3.9.2",
        "4.0.2",
        "4.1.2",
        "4.2.1",
        "4.3.1",
        "4.4.0",
    )
}
"""By minor release, ascending."""
