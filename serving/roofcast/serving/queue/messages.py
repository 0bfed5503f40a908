"""Messages of the job queue as JSON. huey's own are pickles, so that a row of ``jobs.sqlite`` could run code."""

import json
from typing import Any

from huey.registry import Message
from huey.serializer import Serializer


class JsonSerializer(Serializer):  # type: ignore[misc]  # huey has no types
    """Serializer of huey that reads and writes messages whose arguments are JSON values, and nothing else."""

    def _serialize(self, data: Message) -> bytes:
        return json.dumps(data._asdict()).encode()

    def _deserialize(self, data: bytes) -> Message:
        fields: Any = json.loads(data)
        if not isinstance(fields, dict) or not fields.keys() <= set(Message._fields):
            raise ValueError("a row of the job queue is no message")
        return Message(**fields)
