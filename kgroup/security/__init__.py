"""Rights on the embedded cluster: principals, access rules and how they are decided.

Pure values and rules, free of I/O, as in Kafka's StandardAuthorizer: nothing here knows a socket, a file or a
request. Brokers pass the principal of a connection (`Call.principal`) and ask before they serve.
"""
