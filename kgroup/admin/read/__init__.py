"""Groups, members, offsets, lag and topics as a cluster shows them; nothing here changes anything.

Each answer reports what it could not see: an `ItemError` or None in the place of a value, never zero or an
empty list. Brokers are asked in batches and a failure of one does not hide the others. `findings` concludes
from a description alone, which is why it is here and not in `diagnose`.
"""
