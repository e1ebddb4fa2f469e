"""Files that are no cassettes, or must not be loaded: what they hold, and what is said of them."""

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml
from turn_values import turn

from pytest_regen.cassettes import Interaction
from pytest_regen.cassettes.files.format import header_text, interaction_text
from pytest_regen.turns.wire import request_body

_JSON = {"content-type": ("application/json",)}
_ASKED = request_body(turn("Hello."))
_SAID = {"content": [{"type": "text", "text": "Hi."}], "stop_reason": "end_turn"}


def recording(**changes: Any) -> Interaction:
    """Return the recording of a turn."""
    given: dict[str, Any] = {
        "method": "POST",
        "uri": "https://api.anthropic.com/v1/messages",
        "request_body": json.dumps(_ASKED).encode(),
        "status": 200,
        "reason": "OK",
        "response_body": json.dumps(_SAID).encode(),
        "request_headers": _JSON,
        "response_headers": _JSON,
    }
    return Interaction(**{**given, **changes})


def foreign(
    said: bytes | str = json.dumps(_SAID), headers: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return what vcrpy would keep of that turn, as a whole cassette."""
    request = {
        "method": "POST",
        "uri": "https://api.anthropic.com/v1/messages",
        "headers": {},
        "body": json.dumps(_ASKED),
    }
    response = {
        "status": {"code": 200, "message": "OK"},
        "headers": headers or {},
        "body": {"string": said},
    }
    return {"version": 1, "interactions": [{"request": request, "response": response}]}


HEAD: Final = header_text({"source": "other"})
GOOD: Final = (HEAD + interaction_text(recording())).encode()
"""A cassette of ours with one recording."""

_FOREIGN: Final = yaml.safe_dump(foreign(), width=10_000).encode()
_AS_JSON: Final = json.dumps(foreign(), indent=1).encode()
_CONFLICT: Final = b"<<<<<<< HEAD\n%b=======\n%b>>>>>>> other\n"


@dataclass(frozen=True)
class Bad:
    """A file."""

    content: bytes
    line: int
    """That is named."""
    says: str
    """Why, in part."""
    suffix: str = ".yaml"
    vcr: bool = True
    """Whether a test marked ``vcr`` is told the same; vcrpy has no use for some of what is wrong,
    and plays it."""


def _with(old: str, new: str, *, of: bytes = GOOD) -> bytes:
    assert of.count(old.encode()) == 1, old
    return of.replace(old.encode(), new.encode())


def _line_of(start: str, *, of: bytes = GOOD) -> int:
    lines = of.decode().split("\n")
    [number] = [n for n, line in enumerate(lines, 1) if line.strip().startswith(start)]
    return number


def _bomb(use: str) -> bytes:
    """Return a small text that stands for a billion values."""
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    for before, name in zip("abcdefgh", "bcdefghi", strict=True):
        lines.append(f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]")
    return ("\n".join(lines) + "\n" + use).encode()


_BODY = "interactions:\n- request: {method: POST, uri: /x, headers: {}, body: x}\n  response: "
_STATUS = "status: {code: 200, message: OK}, headers: {}"
_STATUS_LINE = _line_of("status:")

BAD: Final[Mapping[str, Bad]] = {
    # Nothing, or no text
    "empty": Bad(b"", 1, "empty"),
    "picture": Bad(b"\x89PNG\r\n\x1a\n" + b"\0" * 40, 1, "binary"),
    "control": Bad(_with("Hello.", "\x1b"), _line_of('"content": "Hello'), "U+001B"),
    # Not there yet
    "lfs": Bad(
        b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n", 1, "Git LFS"
    ),
    "merge": Bad(
        _with("      code: 200\n", (_CONFLICT % (b"code: 200\n", b"code: 201\n")).decode()),
        _line_of("code: 200") + 1,
        "broken",
    ),
    "merge-json": Bad(b"<<<<<<< HEAD\n" + _AS_JSON, 3, "broken", ".json"),
    # Cut
    "cut": Bad(GOOD[:-30], _STATUS_LINE + 1, "cut"),
    "cut-head": Bad(HEAD.encode(), HEAD.count("\n"), "no recording", vcr=False),
    "cut-foreign": Bad(_FOREIGN[: _FOREIGN.index(b"  response:")], 2, "'response' is missing"),
    # Twice
    "twice": Bad(
        _with("    status:\n", "    status:\n      code: 500\n      message: No\n    status:\n"),
        _STATUS_LINE + 3,
        "the key 'status' is there twice",
    ),
    "twice-json": Bad(
        _with('"method": "POST",', '"method": "POST",\n"method": "GET",', of=_AS_JSON),
        1,
        "the key 'method' is given twice",
        ".json",
    ),
    # Made to harm
    "deep": Bad(b"interactions:\n- " + b"[" * 100_000, 2, "levels deep"),
    "deep-json": Bad(
        b'{"interactions": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 1, "deep", ".json"
    ),
    "bomb": Bad(_bomb(f"{_BODY}{{{_STATUS}, body: {{string: *i}}}}\n"), 1, "refers to itself"),
    "merges": Bad(b"<<: [" + b"{x: 1}," * 2_000 + b"]\ninteractions: []\n", 1, "merges"),
    "python": Bad(b"interactions:\n- !!python/object/apply:os.mkdir [x]\n", 2, "python/object"),
    "tag": Bad(b"interactions:\n- !mine x\n", 2, "'!mine'"),
    # Something else
    "nothing": Bad(b"version: 1\ninteractions:\n", 1, "not a cassette"),
    "documents": Bad(_FOREIGN + b"---\n" + _FOREIGN, _FOREIGN.count(b"\n") + 1, "document"),
    "newer": Bad(_with("format 1", "format 2"), 1, "format 2"),
    # Not what it has to be
    "day": Bad(_with("code: 200", "code: 2024-99-99"), 1, "month must be"),
    "status": Bad(
        _with("code: 200", "code: many"), _line_of("- key:"), "three digits", vcr=False
    ),
    "address": Bad(
        _with("https://api.anthropic.com/v1", "'https://[::1/v1'", of=_FOREIGN).replace(
            b"'/messages", b"/messages'"
        ),
        2,
        "IPv6",
        vcr=False,
    ),
    "stream": Bad(
        _with("  request:\n", "  stream: {end: never, chunks: []}\n  request:\n"),
        _line_of("- key:"),
        "cannot end 'never'",
        vcr=False,
    ),
    "misspelt": Bad(
        _with("  request:\n", "  streem: {end: cut, chunks: []}\n  request:\n"),
        _line_of("- key:"),
        "the unknown key 'streem'",
        vcr=False,
    ),
    "packing": Bad(
        yaml.safe_dump(foreign(zlib.compress(b"x" * 99)[:-9], {"content-encoding": ["deflate"]}))
        .encode(),
        2,
        "compressed body is broken",
        vcr=False,
    ),
}  # fmt: skip
