"""The text of a cassette: YAML that vcrpy loads, JSON bodies laid out so that a diff can be read.

A file of ours is a comment, ``version``, ``recording`` and ``interactions``, each interaction
headed by its key. That lets a reader find every recording without parsing any.
"""

import base64
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pytest_regen.cassettes.answers import message_of, tokens_of
from pytest_regen.cassettes.json_text import laid_out
from pytest_regen.cassettes.strict_json import json_or_none
from pytest_regen.cassettes.values import Headers, Interaction, has_body

__all__ = [
    "FIRST_LINE",
    "INTERACTIONS",
    "RECORDING",
    "foreign_text",
    "header_text",
    "interaction_text",
]

FIRST_LINE: Final = "# pytest-regen cassette, format 1\n"
"""A file that starts so is laid out as this module writes it."""

INTERACTIONS: Final = "interactions:\n"

RECORDING: Final = "recording"
"""Name of the mapping that says when, with what and from whom a file was recorded."""

_OWN = frozenset({"recorded_at", "recorded_by", "source", "models"})
"""What stands in it; what else somebody noted stays below ``metadata``."""

_PRINTABLE = re.compile(
    "[\n\t\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]*"
)
"""What a YAML literal block can hold as it is; line ends other than LF would be rewritten."""

_UNSAFE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")

_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./+-]*(?: [A-Za-z0-9_./+-]+)*")
_WORDS_OF_YAML = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})


def header_text(metadata: Mapping[str, Any]) -> str:
    """Return everything that stands before the first interaction.

    Not all of it below ``metadata``: where there is such a key, vcrpy (since 9.4) gives its
    persister three values, and that of pytest-recording 0.14 takes two.
    """
    own = {name: value for name, value in metadata.items() if name in _OWN}
    noted = {name: value for name, value in metadata.items() if name not in _OWN}
    lines = [FIRST_LINE, "version: 1\n", f"{RECORDING}:\n", *_mapping(own, "  ")]
    if noted:
        lines += ["metadata:\n", *_mapping(noted, "  ")]
    return "".join(lines) + INTERACTIONS


def _mapping(values: Mapping[str, Any], indent: str) -> Iterable[str]:
    """Yield the lines of a mapping, which another recorder may have filled with anything."""
    for name, value in values.items():
        head = f"{indent}{_scalar(name)}:"
        if isinstance(value, Mapping):
            yield f"{head}\n" if value else f"{head} {{}}\n"
            yield from _mapping(value, indent + "  ")
        elif isinstance(value, list | tuple):
            yield f"{head}\n" if value else f"{head} []\n"
            yield from (f"{indent}- {_scalar(str(item))}\n" for item in value)
        else:
            yield f"{head} {_scalar(str(value))}\n"


def interaction_text(interaction: Interaction, *, lays_out: bool = True) -> str:
    """Return one interaction as it stands in the file.

    ``status`` comes last, so that a file cut anywhere inside an interaction is seen to be cut.

    Args:
        interaction: the recording.
        lays_out: whether JSON gets a line for each member. Else all text is as it came, also for
            vcrpy, which knows of no layout.
    """
    sent = interaction.request_body
    # A request that does not count as JSON is compared as it is.
    request, _ = _laid_out(sent, as_it_came=not lays_out or json_or_none(sent) is None)
    as_it_came = not lays_out or interaction.is_stream
    answer, layout = _laid_out(interaction.response_body, as_it_came=as_it_came)
    return (
        f"- key: {interaction.key}\n"
        f"{_tokens(interaction)}"
        f"{layout}"
        f"{_stream(interaction)}"
        "  request:\n"
        f"    method: {_scalar(interaction.method)}\n"
        f"    uri: {_scalar(interaction.uri)}\n"
        f"{_headers(interaction.request_headers)}"
        f"    body: {_block(request, '      ')}\n"
        "  response:\n"
        f"{_headers(_answer_headers(interaction, answer))}"
        "    body:\n"
        f"      string: {_block(answer, '        ')}\n"
        "    status:\n"
        f"      code: {interaction.status}\n"
        f"      message: {_scalar(interaction.reason)}\n"
    )


def foreign_text(interaction: Interaction) -> str:
    """Return one interaction as vcrpy writes it, for a file that vcrpy began."""
    import yaml  # noqa: PLC0415 - 20 ms that replay need not spend

    answer = interaction.response_body
    response = {
        "body": {"string": _text_or_bytes(answer)},
        "headers": {n: list(v) for n, v in _answer_headers(interaction, answer).items()},
        "status": {"code": interaction.status, "message": interaction.reason},
    }
    request = {
        "body": _text_or_bytes(interaction.request_body),
        "headers": {n: list(v) for n, v in interaction.request_headers.items()},
        "method": interaction.method,
        "uri": interaction.uri,
    }
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    listed = [{"request": request, "response": response}]
    return str(yaml.dump(listed, Dumper=dumper)) + _stream(interaction)


def _tokens(interaction: Interaction) -> str:
    """Return what the answer says it cost, where it does; for people, nothing reads it."""
    # What is parsed only for this may be large, and mostly tells of none.
    tells = b"usage" in interaction.response_body
    found = tokens_of(message_of(interaction)) if tells else {}
    listed = ", ".join(f"{name}: {count}" for name, count in found.items())
    return f"  tokens: {{{listed}}}\n" if found else ""


def _stream(interaction: Interaction) -> str:
    """Return how a stream arrived; JSON is YAML, and one line of it is no noise in a review."""
    if interaction.end == "complete" and not interaction.chunks:
        return ""
    chunks = json.dumps([list(one) for one in interaction.chunks], separators=(", ", ":"))
    return f"  stream: {{end: {interaction.end}, chunks: {chunks}}}\n"


def _laid_out(body: bytes, *, as_it_came: bool = False) -> tuple[str | bytes, str]:
    """Return a body as the file shows it, and the line that says how the wire wrote it, if any.

    Text as text, JSON a line for each member where the bytes can be told from that.
    """
    text = _text_or_bytes(body)
    if as_it_came or isinstance(text, bytes):
        return text, ""
    found = laid_out(text)
    if found is None or not _fits_literal(found.text):
        return text, ""
    return found.text, f"  layout: {found.layout}\n"


def _text_or_bytes(body: bytes) -> str | bytes:
    try:
        return body.decode()
    except UnicodeDecodeError:
        return body


def _answer_headers(interaction: Interaction, answer: str | bytes) -> Headers:
    """Return the headers of an answer that is written so, sorted."""
    headers = dict(interaction.response_headers)
    if interaction.end == "complete" and has_body(interaction.method, interaction.status):
        headers["content-length"] = (str(_length(answer)),)
    return dict(sorted(headers.items()))


def _length(body: str | bytes) -> int:
    return len(body if isinstance(body, bytes) else body.encode())


def _headers(headers: Headers) -> str:
    if not headers:
        return "    headers: {}\n"
    lines = ["    headers:\n"]
    for name, values in headers.items():
        lines.append(f"      {_scalar(name)}:\n")
        lines += [f"      - {_scalar(value)}\n" for value in values]
    return "".join(lines)


def _block(body: str | bytes, indent: str) -> str:
    if isinstance(body, bytes):
        encoded = base64.encodebytes(body).decode().rstrip("\n")
        return "!!binary |\n" + _indented(encoded, indent)
    if not _fits_literal(body):
        return _quoted(body)
    stripped = body.rstrip("\n")
    ends = len(body) - len(stripped)
    # "-" ends the text at its last line, nothing keeps one line end, "+" keeps them all.
    style = {0: "|-", 1: "|"}.get(ends, "|+")
    return f"{style}\n" + _indented(body[:-1] if ends else body, indent)


def _fits_literal(text: str) -> bool:
    return (
        "\n" in text.strip("\n")
        and text[0] not in " \t\n"
        and _PRINTABLE.fullmatch(text) is not None
    )


def _indented(text: str, indent: str) -> str:
    return "\n".join(indent + line if line else "" for line in text.split("\n"))


def _scalar(text: str) -> str:
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS_OF_YAML:
        return text
    return _quoted(text)


def _quoted(text: str) -> str:
    """Return a double-quoted YAML scalar on one line; JSON's escapes are a subset of YAML's."""
    quoted = json.dumps(text, ensure_ascii=False)
    if quoted.isascii() and "\x7f" not in quoted:
        return quoted  # of a large body searching for the others takes a sixth of the time
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)
