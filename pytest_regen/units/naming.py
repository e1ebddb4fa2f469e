"""How units are named: as ids of test items, and in commands."""

import re
import shlex
from urllib.parse import unquote

# pytest splits ids at "::" and takes what follows "[" for parameters; a colon at either end of a
# name would move the split.
_RESERVED = re.compile(r"[\[\]%\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]|:(?=:|\Z)|(?<=:):|\A:")

_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def encode_name(name: str) -> str:
    """Return a name as an id holds it."""
    return _RESERVED.sub(_escape, name)


def _escape(match: re.Match[str]) -> str:
    # Half a pair as well, because names may come from JSON, which can hold one.
    data = match[0].encode("utf-8", "surrogatepass")
    return "".join(f"%{byte:02X}" for byte in data)


def decode_name(text: str) -> str:
    """Return the name that an id holds."""
    return unquote(text, errors="surrogatepass")


def unit_id(place: str, name: str) -> str:
    """Return the id of a unit: ``path::name``."""
    return f"{encode_name(place)}::{encode_name(name)}"


def node_id(path: str, name: str) -> str:
    """Return a unit as pytest takes it on its command line, where the path stands as it is."""
    return f"{path}::{encode_name(name)}"


def command(verb: str, place: str, name: str | None = None, *options: str) -> str:
    """Return a command about a file, or about one of its units."""
    words = ["pytest-regen", verb, place, *(() if name is None else ("--unit", name)), *options]
    return " ".join(map(_quote, words))


def _quote(word: str) -> str:
    """Return a word as a shell reads it; what would act on the terminal is spelled out."""
    if not _UNPRINTABLE.search(word):
        return shlex.quote(word)
    plain = word.replace("\\", "\\\\").replace("'", "\\'")
    spelled = _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", plain)
    return f"$'{spelled}'"


def tests_command(*places: str) -> str:
    """Return the command that runs the tests of files with units, and of modules of tests."""
    return " ".join(["pytest", *map(_quote, places)])
