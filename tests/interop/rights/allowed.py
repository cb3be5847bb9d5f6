"""Rows in which kgroup answers differently, and why that is no matter of rights."""

ALLOWED = {
    "metadata-creating: exact": "kgroup has made the topic when it answers; Kafka has only asked for it"
}
