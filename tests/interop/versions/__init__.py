"""kgroup's commands at brokers of many versions: what works, what partly, and what needs a later one."""
