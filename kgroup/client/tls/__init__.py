"""A client's TLS: its settings as values, and the context made of them.

Entry points: `values.Tls`, which properties are read into and which imports nothing of TLS;
`context.client_context`, imported by the first connection that is encrypted. Stores are `kgroup.keystores`.
Guarantees: without a setting the broker is verified, name included; errors are put in words.
"""
