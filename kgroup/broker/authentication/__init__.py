"""The security of a broker's listeners: TLS, SASL, and the principals that Kafka's settings admit.

`settings` reads listeners and what they demand; `tls` makes contexts of stores and names peers by their
certificates; `sasl` takes a connection from its first byte to a principal; `mechanisms` decides whether a
token, a password or a proof is right. Nothing here serves a request of the cluster: what comes before
authentication and is not a part of it ends the connection.
"""
