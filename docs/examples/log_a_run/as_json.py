"""The same run, one JSON object a line."""

import json
import logging

from lines import ask


class JsonFormatter(logging.Formatter):
    """Any formatter gets the fields, in `record.concertino`."""

    def format(self, record: logging.LogRecord) -> str:
        fields = getattr(record, "concertino", {})
        return json.dumps({"level": record.levelname, "message": record.getMessage(), **fields})


handler = logging.StreamHandler()
handler.setFormatter(JsonFormatter())
logger = logging.getLogger("concertino")
logger.addHandler(handler)
logger.setLevel(logging.INFO)
ask()
