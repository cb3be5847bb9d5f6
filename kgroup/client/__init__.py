"""A cluster over sockets: one connection per broker, opened on first use, secured, retried if safe.

`transport.SocketTransport` is the entry point, and is what `kgroup.admin` uses; `link` is one socket with its
deadline, `connection` its bytes without the socket. `settings` and `security` are what to connect to and
how, as frozen values: `properties` makes them of Java's and librdkafka's names, `tls` makes a context of
keys and certificates, `auth` proves our identity, `authentication` does so on a connection. `retry` says
when to retry and when that would be wrong. `legacy_consumer` and `legacy_groups` call coordinators of the
ZooKeeper era.

Guarantees: no secret is printed; a deadline holds whatever the other end does.
"""
