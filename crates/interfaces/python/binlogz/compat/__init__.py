"""A drop-in for python-mysql-replication: the same class, events and attributes, compressed transactions included.

    from binlogz.compat import BinLogStreamReader
    from binlogz.compat.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent
"""

from .binlogstream import BinLogStreamReader

__all__ = ["BinLogStreamReader"]
