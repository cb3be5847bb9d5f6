"""Who may do what on the embedded cluster: principals, access rules and how they are decided.

Pure values and rules, free of I/O, as Kafka's StandardAuthorizer has them: nothing here knows a socket,
a file or a request. Brokers say who is at the other end of a connection (`Call.principal`) and ask before
they serve.
"""
