"""The code of errors that the HTTP client makes, apart from the client: reading it imports nothing heavy."""

HTTP_FAILED = -32097
"""`data` of such an error has `http` (the status, 0 for none), `sent`, and `after` (Retry-After)."""
