"""The kind for catalogues of gettext: one ``msgstr`` changes, and no other byte."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import each

from pytest_regen.errors import RegionError, UsageError
from pytest_regen.kinds import messages
from pytest_regen.kinds.gettext import Entries, Gettext
from pytest_regen.kinds.translation import translation_kinds
from pytest_regen.units.kind import Unit, issues_from

HEADER = """\
# Translations for Quay.
msgid ""
msgstr ""
"Project-Id-Version: quay\\n"
"Language: {language}\\n"
"MIME-Version: 1.0\\n"
"Content-Type: text/plain; charset=utf-8\\n"
"Plural-Forms: {forms}\\n"

"""
ENGLISH = "nplurals=2; plural=(n != 1);"
POLISH = "nplurals=3; plural=(n==1 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);"
HERE = '#| msgid "%(name)s is near"\nmsgid "%(name)s is here"\n'
BODY = """\
#. on a button
#: quay/views.py:3
msgctxt "menu"
msgid "Open"
msgstr "Öffnen"

#: quay/views.py:9
#, fuzzy, python-format
#| msgid "%(name)s is near"
msgid "%(name)s is here"
msgstr "%(name)s ist nah"

#, python-format
msgid "%(count)d boat"
msgid_plural "%(count)d boats"
msgstr[0] "ein Boot"
msgstr[1] "%(count)d Boote"

msgid   ""
"A text "
"in pieces"
msgstr  ""
"Ein Text "
"in Stücken"

#, fuzzy
msgid "Bye"
msgstr "Hallo"

#~ msgid "Old"
#~ msgstr "Alt"
"""


def file_of(body: str, language: str = "de", forms: str = ENGLISH) -> str:
    return HEADER.format(language=language, forms=forms) + body


def catalogue(
    root: Path, body: str, language: str = "de", forms: str = ENGLISH
) -> tuple[Gettext, Path]:
    """Return the kind, and the file of one language."""
    path = root / "locale" / language / "LC_MESSAGES" / "messages.po"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(file_of(body, language, forms).encode())
    (kind,) = translation_kinds([{"targets": "locale/*/LC_MESSAGES/*.po"}], root)
    assert isinstance(kind, Gettext)
    return kind, path


def codes(root: Path, entry: str, text: str, forms: str = ENGLISH) -> list[str]:
    """Return the codes of a text for the entry ``entry``; warnings in small letters."""
    kind, path = catalogue(root, entry, forms=forms)
    (name,) = kind.units(path)
    unit = Unit(name, path, text, "", kind)
    return [
        issue.code if issue.severity == "error" else issue.code.lower()
        for issue in issues_from(kind.check(unit), unit)
    ]


def test_units_are_entries_by_their_msgid() -> None:
    """With the context before a bar; obsolete ones are none, a fuzzy one has no text."""
    found = Entries().find(file_of(BODY))

    assert {name: span.text for name, span in found.items()} == {
        "menu|Open": "Öffnen",
        "%(name)s is here": "",
        "%(count)d boat": '["ein Boot", "%(count)d Boote"]',
        "A text in pieces": "Ein Text in Stücken",
        "Bye": "",
    }
    assert found["menu|Open"].line == 14


@pytest.mark.parametrize(("mark", "line_end"), [("", "\n"), ("\ufeff", "\r\n")])
@pytest.mark.parametrize(
    "change",
    [
        ("menu|Open", 'Auf\n"mach"', 'msgstr "Öffnen"', 'msgstr ""\n"Auf\\n"\n"\\"mach\\""'),
        ("A text in pieces", "x", 'msgstr  ""\n"Ein Text "\n"in Stücken"', 'msgstr "x"'),
        (
            "%(count)d boat",
            '["a", "b"]',
            'msgstr[0] "ein Boot"\nmsgstr[1] "%(count)d Boote"',
            'msgstr[0] "a"\nmsgstr[1] "b"',
        ),
        (
            "%(name)s is here",
            "%(name)s ist da",
            f'#, fuzzy, python-format\n{HERE}msgstr "%(name)s ist nah"',
            f'#, python-format\n{HERE}msgstr "%(name)s ist da"',
        ),
    ],
)
def test_no_byte_changes_outside_the_msgstr(
    change: tuple[str, str, str, str], mark: str, line_end: str
) -> None:
    """Header, comments, wrapping, obsolete entries and the flags of others stay as they are."""
    name, text, old, new = change
    file = file_of(BODY)

    made = Entries().replace((mark + file).replace("\n", line_end), {name: text})

    assert file.count(old) == 1
    assert made == (mark + file.replace(old, new)).replace("\n", line_end)


@given(
    st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]), max_size=40)
    | st.text(st.sampled_from('"\\\n\r\t -n'), max_size=90)
)
def test_a_text_is_read_as_it_was_written(text: str) -> None:
    """Whatever it holds, also as a plural form; the next entry is not touched."""
    file = file_of(
        'msgid "a"\nmsgstr "b"\n\nmsgid "c"\nmsgid_plural "d"\nmsgstr[0] "x"\nmsgstr[1] "y"\n'
    )
    forms = json.dumps([f"x{text}", "y"], ensure_ascii=False)

    found = Entries().find(Entries().replace(file, {"a": text, "c": forms}))

    assert {name: span.text for name, span in found.items()} == {"a": text, "c": forms}


@each(
    ("text", "line", "problem"),
    [
        (file_of(BODY).replace("=utf-8", "=latin1"), 7, ".*charset=latin1.* charset=UTF-8"),
        ('<<<<<<< HEAD\nmsgid "a"\nmsgstr ""\n', 1, "gettext cannot read this"),
        ('msgid "a"\nmsgstr ""\n\nmsgid "a"\nmsgstr "b"\n', 5, "a second entry"),
        (file_of('msgid "a"\n# note\nmsgid "b"\nmsgstr ""\n'), 10, "an entry has no msgstr"),
    ],
)
def test_what_cannot_be_read_has_a_line(text: str, line: int, problem: str) -> None:
    with pytest.raises(RegionError, match=f"line {line}: {problem}") as caught:
        Entries().find(text)

    assert caught.value.line == line


@each(
    ("format_", "source", "text", "problem"),
    [
        ("python-format", "%(a)s of %(b)d", "%(b)d: %(a)s %(a)s", "None"),
        ("python-brace-format", "{a.b} of {0} {{x}} %s", "{0}: {a.b:>9} {{y}}", "None"),
        ("python-format", "%(a)s", "%(b)s", "lacks %(a)s"),
        (
            "python-format",
            "%(a)s sure",
            "%(a)s 100% ü",
            "is not valid python-format: '% ü' takes no",
        ),
        ("python-brace-format", "{a}", "{a", "is not valid python-brace-format: expected '}'"),
    ],
)
def test_a_flag_says_what_counts(format_: str, source: str, text: str, problem: str) -> None:
    """What Python would not format is named; of a text for ``%``, braces mean nothing."""
    found = messages.placeholder_problem(source, text, format_)

    assert str(found).startswith(problem)


BOATS = '#, python-format\nmsgid "%(count)d boat"\nmsgid_plural "%(count)d boats"\n'


@each(
    ("forms", "text", "expected"),
    [
        (ENGLISH, ["ein Boot", "%(count)d Boote"], []),
        (ENGLISH, ["%(count)d boat", "%(count)d boats"], ["untranslated", "untranslated"]),
        (ENGLISH, ["ein Boot", "Boote"], ["PLACEHOLDER"]),
        (POLISH, ["łódź", "łodzie", "%(count)d łodzi"], ["PLACEHOLDER"]),
    ],
)
def test_a_form_for_few_numbers_may_say_them_in_words(
    tmp_path: Path, forms: str, text: list[str], expected: list[str]
) -> None:
    """``Plural-Forms`` says for which numbers a form is; one for 2, 22 and 102 needs the number."""
    entry = f'{BOATS}msgstr[0] ""\nmsgstr[1] ""\n'

    assert codes(tmp_path, entry, json.dumps(text), forms) == expected


def test_what_is_asked_names_the_forms(tmp_path: Path) -> None:
    kind, path = catalogue(tmp_path, f'#. in a list\n{BOATS}msgstr[0] ""\n', "pl", POLISH)
    unit = Unit("%(count)d boat", path, "", "", kind)

    assert kind.prompt(unit).splitlines() == [
        "Translate from English (en) into Polish (pl).",
        "",
        'Key: "%(count)d boat"',
        'Note: "in a list"',
        'Text: "%(count)d boat"',
        'Text for several: "%(count)d boats"',
        "Answer with a JSON array of 3 strings, the plural forms:",
        "form 0: for 1",
        "form 1: for 2, 3, 4, 22, 23, 24, …",
        "form 2: for 0, 5, 6, 7, 8, 9, …",
    ]
    assert kind.extract('```json\n["łódź",\n "łodzie", "łodzi"]\n```', unit) == (
        '["łódź", "łodzie", "łodzi"]'
    )


def test_the_path_says_the_language_or_else_the_header(tmp_path: Path) -> None:
    """A file in the language of the msgids, which is a setting, is no translation."""
    (tmp_path / "po").mkdir()
    (tmp_path / "po/quay.po").write_text(file_of("", "es"), "utf-8")
    (tmp_path / "po/template.po").write_text(file_of("", ""), "utf-8")
    places = [f"locale/{tag}/LC_MESSAGES/a.po" for tag in ("de", "sr@latin", "en", "en_GB")]
    (english,) = translation_kinds([{"targets": "**/*.po"}], tmp_path)
    (portuguese,) = translation_kinds([{"targets": "*.po", "source": "pt_BR"}], tmp_path)

    files = [*places, "po/pt_BR.po", "po/quay.po", "po/template.po"]
    others = [file for file in files if not english.claims(tmp_path / file)]
    assert others == ["locale/en/LC_MESSAGES/a.po", "po/template.po"]
    assert not portuguese.claims(tmp_path / "pt-BR.po")
    with pytest.raises(UsageError, match="pybabel init"):
        english.units(tmp_path / "de.po")
