"""The chat completions protocol, without I/O: requests become bytes, bytes become replies."""
