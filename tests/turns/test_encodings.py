"""Escapes are undone one level at a time, by the same rules wherever and however many they are."""

import json

from hypothesis import example, given
from hypothesis import strategies as st

from pytest_regen.credentials.encodings import escaped_places, unescape

PIECES = (
    # What begins, ends or is an escape, and what stands in for one meanwhile.
    *("\\", '"', "'", "/", "n", "t", "r", "e", "0", "33", "x", "u", "U", "{", "}", "N", "L", " "),
    *("\n", "\r\n", "\r", "\t", "\x1b", "[", "0m", "&", "#", ";", "amp", "quot", "&#10;", "&#x5c;"),
    *("41", "0041", "000000", "d800", "\\u005c", "\\x5c", "\\ud800", "\\u0001", "\\u{1f600}"),
    *("\x01", "\x07", "\0", "\ud800", "\ud801", "\ud802", "\udfff", "é", "😀"),
)
TEXTS = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
MANY = 1_001
END = "|"
"""Part of no escape: what stands before it and what stands behind it do not touch."""


@given(TEXTS)
@example(r"\\" + '"' + r"\\n\\\n")
@example("\\\r\\n")
@example("\\\\u005cn\\u005cn")
@example("\\n" + "".join(map(chr, range(0xD800, 0xD900))))
def test_many_escapes_mean_what_few_do(text: str) -> None:
    """A text is read alike once or a thousand times, and what it stands for is found again."""
    once = unescape(text + END)
    whole = (text + END) * MANY

    often = unescape(whole)

    assert often == once * MANY
    place = escaped_places(whole)
    ends = [at for at, sign in enumerate(often[: 40 * len(text)]) if sign == END]
    assert [whole[place(at)] for at in ends] == [END] * len(ends)
    assert place(len(often)) == len(whole)


def test_json_says_what_it_was_made_of() -> None:
    plain = "say \"no\"\n\tin C:\\new\\table / 'x' \\\né😀\x01\x7f" * 5_000
    once = json.dumps(plain, ensure_ascii=False)

    assert unescape(json.dumps(once, ensure_ascii=False)) == f'"{once}"'
    assert unescape(once) == f'"{plain}"'
