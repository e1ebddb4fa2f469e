"""Server-sent events as a client reads them, written from the specification."""

import codecs
import json
from collections.abc import Iterable
from typing import Any, NamedTuple


class Event(NamedTuple):
    """One event, its data as JSON."""

    name: str
    data: Any


def events_in(pieces: Iterable[bytes]) -> list[Event]:
    """Return the events of a stream that arrived in pieces, cut anywhere."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    text = "".join(decoder.decode(piece) for piece in pieces) + decoder.decode(b"", final=True)
    found = []
    for block in text.split("\n\n"):
        fields = [line.split(": ", 1) for line in block.split("\n") if line[:1] not in {"", ":"}]
        name = next((value for key, value in fields if key == "event"), "message")
        data = "\n".join(value for key, value in fields if key == "data")
        if data:
            found.append(Event(name, json.loads(data)))
    return found
