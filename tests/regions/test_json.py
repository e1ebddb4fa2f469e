"""JSON regions: one value changes and no other byte, whatever the file looks like."""

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tables import each

from pytest_regen.errors import RegionError
from pytest_regen.regions import JsonStrings, JsonValues, WholeFile

CHARACTERS = st.characters(exclude_categories=()) | st.sampled_from('./~"\\\r\n\u2028\ud800\ufeff0')
STRINGS = st.text(CHARACTERS, max_size=5)
KEYS = st.sampled_from(("a", "b", "a.b", "", "/a", "0", "~1")) | STRINGS
LEAVES = STRINGS | st.integers() | st.booleans() | st.none()
TREES = st.recursive(
    LEAVES,
    lambda tree: st.dictionaries(KEYS, tree, max_size=4) | st.lists(tree, max_size=3),
    max_leaves=12,
)
DOCUMENTS = st.dictionaries(KEYS, TREES, max_size=4) | st.lists(TREES, max_size=3)


def dumped(document: object, line_end: str, mark: str, style: dict[str, Any]) -> str:
    """Return a file as a program of some taste writes it."""
    return mark + (json.dumps(document, **style) + "\n").replace("\n", line_end)


FILES = st.builds(
    dumped,
    DOCUMENTS,
    st.sampled_from(("\n", "\r\n")),
    st.sampled_from(("", "\ufeff")),
    st.fixed_dictionaries(
        {
            "indent": st.sampled_from((None, 2, 4, "\t")),
            "ensure_ascii": st.booleans(),
            "separators": st.sampled_from(((", ", ": "), (",", ":"), (" , ", " : "))),
        }
    ),
)


def loaded(file: str) -> object:
    """Return the document in a file."""
    document: object = json.loads(file.removeprefix("\ufeff"))
    return document


@given(FILES, STRINGS, st.data())
def test_only_the_bytes_of_a_changed_string_change(
    file: str, text: str, data: st.DataObject
) -> None:
    """A new text is read back as it was; everything else in the file stays where it was."""
    found = JsonStrings().find(file)
    assume(found)
    assume(text == text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass"))
    name = data.draw(st.sampled_from(sorted(found)))

    changed = JsonStrings().replace(file, {name: text})

    assert JsonStrings().replace(file, {name: span.text for name, span in found.items()}) == file
    assert all(json.loads(file[span.start : span.end]) == span.text for span in found.values())
    assert JsonStrings().find(changed)[name].text == text
    assert changed[: found[name].start] == file[: found[name].start]
    assert changed.endswith(file[found[name].end :])


@given(FILES, st.data())
def test_what_is_removed_can_be_added_again(file: str, data: st.DataObject) -> None:
    """Units taken out are gone, others keep their texts; added, they hold their texts again."""
    found = {name: span.text for name, span in JsonValues().find(file).items()}
    assume(found)
    names = data.draw(st.lists(st.sampled_from(sorted(found)), min_size=1, unique=True))
    if isinstance(loaded(file), list):
        names = list(found)[-len(names) :]

    less = JsonValues().remove(file, names)
    again = JsonValues().insert(less, {name: found[name] for name in names}, [*found])

    left = {name: span.text for name, span in JsonValues().find(less).items()}
    assert set(left) == set(found) - set(names)
    assert loaded(again) == loaded(file)
    assert all(JsonValues().same(found[name], text) for name, text in left.items())


def test_a_file_of_escapes_gets_escapes() -> None:
    """A file in plain ASCII stays one; in others, only what no file can hold is escaped."""
    assert JsonStrings().replace('{"a": "\\u00e9"}', {"a": "ü"}) == '{"a": "\\u00fc"}'
    assert JsonStrings().replace('{"a": "e"}', {"a": "\ud800ü"}) == '{"a": "\\ud800ü"}'


CATALOGUE = """{
    "title": "Harbour",
    "menu": {
        "open": "Open",
        "close": "Close"
    }
}
"""


def test_ambiguous_names_are_pointers() -> None:
    """Where two values would have one name, both have names that only one of them has."""
    found = JsonStrings().find('{"a.b": "1", "a": {"b": "2"}, "": "3", "/c": "4",\n"d.e": "5"}')

    assert list(found) == ["/a.b", "/a/b", "/", "/~1c", "d.e"]
    assert [span.line for span in found.values()] == [1, 1, 1, 1, 2]


def test_a_new_string_goes_behind_its_predecessor() -> None:
    """Two people who add different keys change different lines."""
    order = ["first", "title", "menu.open", "menu.edit", "menu.close", "menu.more.all", "last"]
    texts = dict.fromkeys(("last", "menu.more.all", "menu.edit", "first"), "New")

    added = JsonStrings().insert(CATALOGUE, texts, order)

    assert (
        added
        == """{
    "first": "New",
    "title": "Harbour",
    "menu": {
        "open": "Open",
        "edit": "New",
        "close": "Close",
        "more": {
            "all": "New"
        }
    },
    "last": "New"
}
"""
    )
    assert JsonStrings().remove(added, texts) == CATALOGUE.replace(
        '"Close"\n', '"Close",\n        "more": {}\n'
    )


@each(
    ("text", "name", "added"),
    [
        ('{"a":"1","c":"3"}', "b", '{"a":"1","b":"x","c":"3"}'),
        ('{"a.b": "1"}', "a.c", '{"a.b": "1", "a.c": "x"}'),
        ('{"b": null}', "b", '{"b": "x"}'),
        ("", "a.b", '{\n  "a": {\n    "b": "x"\n  }\n}\n'),
    ],
)
def test_what_is_added_looks_like_the_rest(text: str, name: str, added: str) -> None:
    """Minified and flat catalogues stay so, null is filled, a file that is not there is begun."""
    assert JsonStrings().insert(text, {name: "x"}, ["a", "b", "c"]) == added


def test_a_value_in_the_way_is_an_error() -> None:
    with pytest.raises(RegionError, match="line 1: a value stands where 'a' belongs"):
        JsonStrings().insert('{"a": {"b": "x"}}', {"a": "x"})
    with pytest.raises(RegionError, match=r"a value stands where 'a\.b' belongs"):
        JsonStrings().insert("", {"a": "x", "a.b": "y"})


def test_items_are_added_to_a_list_in_order() -> None:
    """An item goes to the end of a list; only the last ones are taken out."""
    assert JsonStrings().insert('["a"]', {"1": "b", "2": "c"}) == '["a", "b", "c"]'
    assert JsonStrings().remove('["a", "b"]', ["1"]) == '["a"]'
    with pytest.raises(RegionError, match="cannot be taken out"):
        JsonStrings().remove('["a", "b"]', ["0"])


def test_values_are_compared_decoded() -> None:
    """Blanks, escapes, depth and the order of keys make no drift; another value does."""
    same = JsonValues().same

    assert same('{"a": 1, "b": "\\u00e9"}', '{\n "b": "é",\n "a": 1}')
    assert not same("true", "1")
    assert not same("{", "{}")
    assert not same("[1, 2]", "[2, 1]")
    file, text = '{\n  "a": {\n    "b": 1\n  }\n}', '{\n  "b": 1\n}'
    assert JsonValues().find(file)["a"].text == text
    assert JsonValues().replace('{\n  "a": 0\n}', {"a": text}) == file


def test_a_text_that_is_no_json_cannot_be_a_value() -> None:
    """A broken reply never breaks the file around it."""
    for text in ("", '{"a": 1', '1}, "b": {', '{"a": 1, "a": 2}', "NaN"):
        with pytest.raises(RegionError, match="'a'"):
            JsonValues().replace('{"a": {}}', {"a": text})


@each(
    ("file", "line", "problem"),
    [
        ('{\n"a": "x",\n"a": "y"}', 3, "a second time .first: line 2"),
        ('{"a": NaN}', 1, "NaN"),
        ('{\n<<<<<<< HEAD\n"a": "x"}', 2, "Expecting property name"),
        ("[" * 100_000, 1, "nested too deeply"),
    ],
)
def test_what_is_no_json_is_an_error_with_the_line(file: str, line: int, problem: str) -> None:
    """A broken file is named with the place; nothing is read from it."""
    with pytest.raises(RegionError, match=f"line {line}: the .*{problem}") as caught:
        JsonStrings().find(file)

    assert caught.value.line == line


def test_a_whole_file_is_one_unit() -> None:
    """Everything but a byte order mark and the last line end is the unit; it comes back exactly."""
    found = WholeFile().find("\ufeffa\r\nb\r\n")

    assert {name: span.text for name, span in found.items()} == {"file": "a\nb"}
    assert WholeFile().replace("\ufeffa\r\nb\r\n", {"file": "x\ny"}) == "\ufeffx\r\ny\r\n"
    assert WholeFile().insert("", {"file": "x"}) == "x\n"
