"""Logs of the service: one JSON object per line on standard error."""

import json
import logging
import sys
import time
from typing import Any

LOG = logging.getLogger("quanet.serve")
ACCESS = logging.getLogger("quanet.access")


class JsonLines(logging.Formatter):
    """A record as one line of JSON, with what `extra={"facts": ...}` adds."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        line: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "facts", {}),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=True, default=str)


def configure_logs(level: int = logging.INFO) -> None:
    """Write the logs of this process as JSON lines; uvicorn's own access log, which has query strings, is off."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("quanet", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)
    logging.getLogger("uvicorn.access").disabled = True
