"""Every API that kgroup speaks or serves, a file each: request, response, and their parts.

Only declarations: a field's annotation says its wire type, since and until which version it is there, and
whether it is tagged. Names are Kafka's, in Python's spelling; `VERSIONS` is what is served, `FLEXIBLE` from
where on. Tests compare the bytes with Kafka's own classes; docs/protocol-coverage.md lists them all.
"""
