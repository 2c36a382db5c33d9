"""Traces: the record of every run, on disk as it happens.

trace    the records, read and written        journal, journal_*  the crash-safe file under it
records  those of large files, one by one     facts, overview     what is known of a run without its records
index    that, kept beside a large file
sealing  what hides the file  redacted_copy    a copy that can be shared
sink     from events to the file              blobs, disk         large values, durable writes
memory   what a resumed run remembers         store                a folder of traces
tail     its records while they are written
"""

from .memory import TraceMemory
from .sink import Durability, JournalSink
from .store import TraceStore
from .tail import TraceTail
from .trace import VERSION, Summary, Trace

__all__ = ["VERSION", "Durability", "JournalSink", "Summary", "Trace", "TraceMemory", "TraceStore", "TraceTail"]
