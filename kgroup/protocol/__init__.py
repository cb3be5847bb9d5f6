"""Bytes and values: Kafka's messages, records and batches, each declared once.

`messages` has a file for each API; `compiler` makes a reader and a writer of a declaration for each version
(`types` has the vocabulary, `codec` keeps them). `registry` maps API keys to classes, `headers` and `frame`
handle whole requests. `group_records`, `streams_records`, `share_records`, `share_state_records` and
`transaction_records` are the coordinators' records; `subscription` and `embedded` what members send each
other through their group; `batches` and `log_records` what Produce, Fetch and segments carry.

Pure, and below everything except `domain` and `errors`. Guarantees: the bytes are Kafka 4.3.1's
(tests/conformance); reading any bytes ends in a value or in `DecodeError`.
"""
