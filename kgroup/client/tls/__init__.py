"""How a client speaks TLS: what a connection needs as values, and the context made of them.

To be used from above: `values.Tls`, which properties are read into and which imports nothing of TLS;
`context.client_context`, imported by the first connection that is encrypted. Stores are `kgroup.keystores`.
Promised: without a setting the broker is verified, name included; what fails is put in words.
"""
