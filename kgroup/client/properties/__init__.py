"""A client's properties, in Java's names and in librdkafka's, as one `Security` value.

`catalogue` knows every property of security that Kafka 4.3.1 or librdkafka has, and what is done with it;
`given` keeps who gave which, so that an error can say where to look. `tls`, `sasl`, `jaas`, `oauthbearer`
and `aws` read their own. Entrance: `security.security_of`. Promised: a property that would change who is
trusted is obeyed or refused, never ignored.
"""
