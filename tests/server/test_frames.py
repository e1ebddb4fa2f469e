"""Events survive the network: however their bytes are split, a reader gets the same ones."""

import codecs
import json
import re
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pytest_regen.server.requests import frame

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
EVENTS = st.lists(
    st.tuples(st.sampled_from(("waiting", "clarification", "complete", "error")), JSON), max_size=5
)


class Reader:
    """Reads a stream piece by piece, as the standard says.

    Lines end with LF, CR or both; a blank one ends an event; one that begins with a colon is none.
    """

    def __init__(self) -> None:
        self.events: list[tuple[str, Any]] = []
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._rest = ""
        self._name = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> None:
        """Take the next piece."""
        self._rest += self._decoder.decode(chunk)
        # A CR at the end may be half of a line end.
        *lines, self._rest = re.split(r"\r\n|\n|\r(?!$)", self._rest)
        for line in lines:
            self._line(line)

    def _line(self, line: str) -> None:
        field, _, value = line.partition(":")
        if field == "event":
            self._name = value.removeprefix(" ")
        elif field == "data":
            self._data.append(value.removeprefix(" "))
        elif not line and self._data:
            self.events.append((self._name, json.loads("\n".join(self._data))))
            self._name, self._data = "", []


@given(EVENTS, st.lists(st.integers(0, 400), max_size=8), st.booleans())
def test_events_are_the_same_wherever_they_are_split(
    events: list[tuple[str, Any]],
    cuts: list[int],
    beats: bool,  # noqa: FBT001 - drawn
) -> None:
    """In the middle of a name, a line end or a character; with comments between them or not."""
    stream = b"".join((b": beat\n\n" if beats else b"") + frame(*event) for event in events)
    places = sorted({0, len(stream), *(cut % (len(stream) + 1) for cut in cuts)})
    reader = Reader()
    for one, other in pairwise(places):
        reader.feed(stream[one:other])

    assert reader.events == events


@given(st.text(), JSON)
def test_an_event_is_one_frame(text: str, data: Any) -> None:
    """Two lines and a blank one, whatever is told; nothing in it can end it early."""
    lines = frame("complete", {"said": text, "data": data}).split(b"\n")

    assert [line.partition(b":")[0] for line in lines] == [b"event", b"data", b"", b""]
    assert b"\r" not in b"".join(lines)
