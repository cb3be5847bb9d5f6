"""A recorder of groups, run as a service: what the log has, what only a look shows, and the incidents in it.

`recorder` runs it; `lines` are what it stores beside the segments of a capture, `then` reads them.
"""
