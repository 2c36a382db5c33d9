"""Traces: the record of every run, on disk as it happens.

_trace    the records, read and written        _journal, _journal_*  the crash-safe file under it
_sink     from events to the file              _blobs, _disk         large values, durable writes
_memory   what a resumed run remembers         _store                a folder of traces
"""

from ._memory import TraceMemory
from ._sink import SUFFIX, Durability, JournalSink
from ._store import TraceStore
from ._trace import VERSION, Summary, Trace

__all__ = ["SUFFIX", "VERSION", "Durability", "JournalSink", "Summary", "Trace", "TraceMemory", "TraceStore"]
