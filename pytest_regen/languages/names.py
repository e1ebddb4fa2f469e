"""Names and texts of the wire, as far as languages treat them alike."""

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Final

_WORD: Final = re.compile(
    r"[A-Z]{2,}s(?![a-z])"  # the URLs of URLsSeen
    r"|[A-Z]+(?=[A-Z][a-z])"  # the XML of XMLReader
    r"|[A-Z]?[a-z]+[0-9]*|[A-Z]+[0-9]*|[0-9]+"
)

_SENTENCE_END: Final = re.compile(r"[.!?](?=\s)")
_LONG: Final = 200
_SIGNS: Final = r"""
    not! hash# dollar$ percent% and& star* plus+ comma, minus- dot. slash/ colon: semicolon;
    less< equal= greater> question? at@ backslash\ caret^ underscore_ or| tilde~
    """
SYMBOLS: Final = {" ": "space"} | {word[-1]: word[:-1] for word in _SIGNS.split()}
"""Words for characters, for a name that has no others."""


def word_set(text: str) -> frozenset[str]:
    """Return the words of ``text``: tables of names are written as text, to be read."""
    return frozenset(text.split())


def split_words(
    text: str, is_legal: Callable[[str], bool], word: re.Pattern[str] = _WORD
) -> list[str]:
    """Return the words of ``text``, without underscores and characters that are not legal.

    Args:
        text: a name of the wire.
        is_legal: whether an identifier may have a character behind its first one.
        word: a word of a run of ASCII letters and digits.
    """
    legal = "".join(each if each != "_" and is_legal(each) else " " for each in text)
    # Capitals tell words apart only in ASCII; elsewhere a word is a run of letters.
    runs = legal.split()
    return [each for run in runs for each in (word.findall(run) if run.isascii() else [run])]


def capitalise(word: str, is_legal: Callable[[str], bool]) -> str:
    """Return ``word`` with a capital first letter; ``ID`` is ``Id``."""
    is_acronym = word.isascii() and (word.isupper() or word[:-1].isupper())
    capital = word[0].upper()
    # Because the capital of some letters is two letters, or one that identifiers do not have.
    first = capital if len(capital) == 1 and is_legal(capital) else word[0]
    return first + (word[1:].lower() if is_acronym else word[1:])


def first_sentence(text: str) -> str:
    """Return a description as code shows it: of a long one the first sentence."""
    end = _SENTENCE_END.search(text) if len(text) > _LONG else None
    return text[: end.end()] if end else text


def shorten(name: str, original: str, most: int) -> str:
    """Return ``name`` cut to ``most`` characters, with a hash of the original at its end.

    The hash tells names apart that begin alike.
    """
    if len(name) <= most:
        return name
    digest = hashlib.sha256(original.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{name[: most - 9]}_{digest}"  # 9, because of the underscore and eight digits


def unescape(text: str, escape: re.Pattern[str], simple: Mapping[str, str]) -> str:
    r"""Return what the inside of a literal stands for.

    Args:
        text: between the quotation marks.
        escape: an escape sequence. Groups 1 to 3 are the digits of a number, 4 anything else.
        simple: what a single character stands for; any other stands for itself.
    """

    def value(match: re.Match[str]) -> str:
        for digits in match.group(1, 2, 3):
            if digits:
                code = int(digits, 16)
                return chr(code) if code <= 0x10FFFF else "\ufffd"  # Unicode's end
        return simple.get(match[4], match[4])

    if "\\" not in text:
        return text
    found = escape.sub(value, text)
    if not any("\ud800" <= each <= "\udfff" for each in found):
        return found
    # The two halves of a character, as ``\uD83D\uDE00`` has them, are one.
    return found.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
