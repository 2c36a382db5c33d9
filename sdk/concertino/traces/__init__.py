"""Traces: the record of a run, one line per event."""
