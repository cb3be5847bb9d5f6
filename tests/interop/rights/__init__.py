"""The matrix of requests and access rules: played on Kafka 4.3.1 and on kgroup, and compared row by row.

`cases` are the requests with the rights each needs, `grants` makes the rule sets for a case from those needs,
`world` plays a row on a cluster, and `visible` is what of an answer a client may not see differently.
"""
