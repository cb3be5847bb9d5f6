"""A cluster over sockets: one connection a broker, opened on first use, secured, tried again where right.

`transport.SocketTransport` is the entrance, and is what `Admin` speaks to; `link` is one socket with its
deadline, `connection` its bytes without the socket. `settings` and `security` are what to connect to and
how, as frozen values: `properties` makes them of Java's and librdkafka's names, `tls` makes a context of
keys and certificates, `auth` proves who we are, `authentication` does so on a connection. `retry` says when
to ask again and when that would be wrong. `legacy_consumer` and `legacy_groups` speak to coordinators of
the ZooKeeper era.

Promised: no secret is printed; a deadline holds whatever the other end does.
"""
