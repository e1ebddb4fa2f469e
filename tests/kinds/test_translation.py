"""The translation kind: which files, what is asked, how a reply is read, what is wrong with one."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tables import each

from pytest_regen.errors import UsageError
from pytest_regen.kinds.catalogues import language_of
from pytest_regen.kinds.translation import Translation, translation_kinds
from pytest_regen.units.kind import Unit, issues_from


def kind_for(root: Path, source: object, **entry: object) -> Translation:
    text = source if isinstance(source, str) else json.dumps(source)
    (root / "en.json").write_text(text, "utf-8")
    (kind,) = translation_kinds([{"source": "en.json", "targets": "*.json", **entry}], root)
    assert isinstance(kind, Translation)
    return kind


def issues(
    root: Path, source: str, text: str, language: str = "de", *, key: str = "key"
) -> list[str]:
    """Return the codes of what is wrong with a translation; warnings in small letters."""
    kind = kind_for(root, {key: source}, keep=["Berthly"])
    unit = Unit(key, root / f"{language}.json", text, "", kind)
    found = issues_from(kind.check(unit), unit)
    return [issue.code if issue.severity == "error" else issue.code.lower() for issue in found]


DAYS = "{n, plural, one {# day} other {# days}}"
ARABIC = "".join(f"{c} {{# {c * 9}}} " for c in ("zero", "one", "two", "few", "many", "other"))


@each(
    ("source", "text", "codes", "language"),
    [
        ("Cancel", "Abbrechen", [], "de"),
        ("Berthly", "Berthly", [], "de"),
        ("a@boats.org", "a@boats.org", [], "de"),
        ("Settings", "Einstellungen für dein Konto und für alle deine Boote", [], "de"),
        ("Hello {name}", "Hallo", ["PLACEHOLDER"], "de"),
        ("<b>Go</b>", "<b>Los", ["TAGS"], "de"),
        ("<b>{n}</b> a day", "<b>{n}</b> am <b>Tag</b>", ["tags"], "de"),
        ("save {n} Changes", "Save {n} changes", ["untranslated"], "de"),
        ("Departure must follow", "Departure must follow", ["UNTRANSLATED"], "de"),
        ("one.\n\ntwo", "eins.\n\nzwei.\n\nI kept it short.", ["LENGTH"], "de"),
        ("{n} boats", "{n, plural, one {# Boot} other {# Boote}}", [], "de"),
        ("{n} boats", "{n, plural, one {# Boot}, other {# Boote}}", ["PLACEHOLDER"], "de"),
        ("Go", "Los. " * 30, ["LENGTH"], "de"),
        (DAYS, "{n, plural, one {# dzień} few {# dni} other {# dni}}", ["placeholder"], "pl"),
        (DAYS, "{n, plural, one {# dzień} other {# dni}}", ["PLACEHOLDER"], "pl"),
        (DAYS, "{n, plural, one {# dni} other {# dni}}", [], "pl"),
        (DAYS, "{n}日", [], "ja"),
        ("A quite ordinary sentence about the weather " * 6, "天气很好" * 15, [], "zh"),
        ("天气很好" * 15, "A quite ordinary sentence about the weather " * 6, [], "en-GB"),
        ("Save all changes", "Save all changes", [], "en-GB"),
        (DAYS, f"{{n, plural, {ARABIC}}}", [], "ar"),
    ],
)
def test_what_is_wrong_has_a_code(
    tmp_path: Path, source: str, text: str, codes: list[str], language: str
) -> None:
    """Each check has one code; what may be right in that language is none, or a warning."""
    assert issues(tmp_path, source, text, language) == codes


@each(
    ("key", "language", "text", "codes"),
    [
        ("berth_one", "de", "ein Platz", []),
        ("berth", "de", "ein Platz", ["PLACEHOLDER"]),
        ("berth_one", "ru", "одно место", ["PLACEHOLDER"]),
    ],
)
def test_the_form_for_one_may_say_the_number_in_words(
    tmp_path: Path, key: str, language: str, text: str, codes: list[str]
) -> None:
    """Keys of i18next tell it; where ``one`` is for 21, too, the number has to stand."""
    assert issues(tmp_path, "{{count}} berth", text, language, key=key) == codes


@each(
    ("reply", "text"),
    [
        ('"Gesamt: "', "Gesamt: "),
        ('```json\n"Gesamt:"\n```', "Gesamt: "),
        ('"Ein "Wort""', 'Ein "Wort" '),
    ],
)
def test_a_reply_is_read_as_json_or_as_it_is(tmp_path: Path, reply: str, text: str) -> None:
    """Blanks around a text are those of the source, however a model writes them."""
    kind = kind_for(tmp_path, {"key": "Total: "})

    assert kind.extract(reply, Unit("key", tmp_path / "de.json", "", "", kind)) == text


def test_what_is_asked_names_languages_and_quotes_the_text(tmp_path: Path) -> None:
    """The text stands on one line of JSON, so that it cannot pose as an instruction."""
    kind = kind_for(
        tmp_path, {"a": 'x\nIgnore "this"', "n": "{n, plural, other {x}}"}, style="Say du."
    )
    path = tmp_path / "locales" / "pl.json"

    assert kind.prompt(Unit("a", path, "", "", kind)) == (
        'Translate from English (en) into Polish (pl).\n\nKey: "a"\nText: "x\\nIgnore \\"this\\""'
    )
    assert kind.prompt(Unit("n", path, "", "", kind)).endswith("one, few, many, other.")
    assert kind.system.endswith("\n\nSay du.")


def test_targets_have_the_names_of_the_source(tmp_path: Path) -> None:
    """Names and places come from the source, whatever a target file looks like."""
    source = {"a.b": "1", "c": {"d": "2"}, "blank": "", "list": ["3", "4"], "n": 5}
    kind = kind_for(tmp_path, source)
    names = list(kind.units(tmp_path / "de.json"))

    file = kind.region.insert("", dict.fromkeys(names, "x"), names)

    assert names == ["a.b", "c.d", "list.0", "list.1"]
    assert json.loads(file) == {"a.b": "x", "c": {"d": "x"}, "list": ["x", "x"]}
    assert list(kind.region.find(file)) == names
    assert list(kind.region.find('{"blank": "", "c": {"d": "y"}, "old": "z"}')) == ["c.d", "old"]


def test_a_source_that_changed_is_read_again(tmp_path: Path) -> None:
    """A kind that lives as long as a server or a watcher sees the catalogue as it is."""
    kind = kind_for(tmp_path, {"a": "x"})
    list(kind.units(tmp_path / "de.json"))
    (tmp_path / "en.json").write_text('{"a": "x", "b": "y"}', "utf-8")
    os.utime(tmp_path / "en.json", ns=(1, 1))

    assert list(kind.units(tmp_path / "de.json")) == ["a", "b"]


def test_descriptions_of_arb_files_are_part_of_the_prompt(tmp_path: Path) -> None:
    """Flutter's catalogues describe their texts; metadata is no text to translate."""
    catalogue = {"@@locale": "en", "go": "Go", "@go": {"description": "a button"}}
    (tmp_path / "app_en.arb").write_text(json.dumps(catalogue), "utf-8")
    entry = {"source": "app_en.arb", "targets": "*.arb"}
    (kind,) = translation_kinds([entry], tmp_path)
    unit = Unit("go", tmp_path / "app_pt_BR.arb", "", "", kind)

    assert list(kind.units(unit.path)) == ["go"]
    assert 'into Portuguese (pt-BR).\n\nKey: "go"\nNote: "a button"' in kind.prompt(unit)
    assert kind.inputs(unit) == {"the source text": "Go", "its note": "a button"}
    assert list(kind.region.find('{"@@locale": "pt", "go": "Ir", "@x": {"a": "b"}}')) == ["go"]


def test_a_source_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """The error shows the catalogue that is translated from, not the one that is checked."""
    kind = kind_for(tmp_path, {"a": "x"})
    (tmp_path / "en.json").write_bytes("\ud800".encode("utf-8", "surrogatepass"))

    with pytest.raises(UsageError, match=r"en\.json, the source of translations"):
        kind.units(tmp_path / "de.json")


@each(
    ("file", "language"),
    [
        ("locales/zh_Hant_TW.json", "zh-Hant-TW"),
        ("lib/l10n/app_de.arb", "de"),
        ("locales/readme.json", None),
    ],
)
def test_the_name_of_a_file_says_its_language(file: str, language: str | None) -> None:
    assert language_of(Path("/project") / file) == language


@each(
    ("entries", "problem"),
    [
        ([{"targets": ["*.po", "*.json"], "source": "en.json"}], "a table of their own"),
        ([{"targets": "*.po", "source": "en.json"}], "of .po files the language of the msgids"),
        ([{"targets": "*.json"}], "source = '' is wrong"),
        ([{"source": "en.json", "targets": []}], "targets = [] is wrong"),
        (
            [{"source": "en.json", "targets": "*.json", "stile": ""}],
            "key 'stile'\n  why:  known are targets, source, style, keep\n  next: write style",
        ),
    ],
)
def test_a_wrong_table_is_a_usage_error(tmp_path: Path, entries: Any, problem: str) -> None:
    (tmp_path / "en.json").write_text("{}", "utf-8")

    with pytest.raises(UsageError, match="translations") as caught:
        translation_kinds(entries, tmp_path)

    assert problem in str(caught.value)
