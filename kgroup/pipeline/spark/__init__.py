"""Spark itself: a session that starts on any machine with Python and leaves no process behind.

`java` finds or supplies a Java that is new enough, `session` starts Spark quietly, `package` ships kgroup to
executors as one zip, `installed` makes them use their own copy if it is the same and compiled. Nothing here
knows what the tables hold.
"""
