"""The shipped kinds for catalogues, and the one whose texts stand in another JSON catalogue."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from pytest_regen.errors import RegionError, UsageError
from pytest_regen.extras import needs
from pytest_regen.files import Stamp, stamp
from pytest_regen.kinds import catalogues
from pytest_regen.regions import JsonStrings, Span
from pytest_regen.regions.base import decode
from pytest_regen.settings import Rule, check_table, is_globs, is_names, wrong_value
from pytest_regen.units.kind import Finding, Unit

_TABLE: Final = "[[tool.pytest-regen.translations]]"
_KEYS: Final[Mapping[str, Rule]] = {
    "targets": (is_globs, 'a glob such as "locales/*.json", or a list of them'),
    "source": (lambda text: isinstance(text, str), "the name of a file, or a language"),
    "style": (lambda text: isinstance(text, str), 'a text such as "Say du."'),
    "keep": (is_names, 'a list of names such as ["Berthly"]'),
}
# Keys of i18next and others for the forms of a plural.
_ONE: Final = re.compile(r"(?:^|[._-])(?:zero|one|two|singular)$", re.IGNORECASE)


class _Source(NamedTuple):
    """The catalogue that is translated from."""

    texts: Mapping[str, str]
    """Texts to translate, by name."""
    paths: Mapping[str, tuple[str | int, ...]]
    """The paths of all strings, so that a target file has them in the same places."""
    notes: Mapping[str, str]
    """What an ARB file says about a text."""


class _Catalogue(JsonStrings):
    """Strings of a target file, named and placed as the source has them."""

    def __init__(self, kind: "Translation") -> None:
        super().__init__()
        self._kind = kind

    def find(self, text: str) -> dict[str, Span]:
        """Return the strings but for metadata and those that are blank in the source."""
        source = self._kind.read_source()
        return {
            name: span
            for name, span in super().find(text).items()
            if name in source.texts or not (name in source.paths or self._kind.is_metadata(name))
        }

    def _path(self, root: Any, name: str) -> tuple[str | int, ...]:
        return self._kind.read_source().paths.get(name) or super()._path(root, name)


class Translation(catalogues.Catalogues):
    """Strings of a catalogue, each made from the string of the same key in another language."""

    region: _Catalogue

    def __init__(
        self,
        root: Path,
        source: str,
        targets: Sequence[str],
        *,
        style: str = "",
        keep: Sequence[str] = (),
    ) -> None:
        """Describe the catalogues of a project.

        Args:
            root: the root of the project.
            source: the catalogue to translate from, a path from the root; of ``.po`` files the
                language of the msgids, ``en`` by default.
            targets: globs of the catalogues; the source and files without a language are left out.
            style: what the user wants of every translation: a sentence or two.
            keep: names that stay as they are.
        """
        super().__init__(targets, style, keep)
        self.source = root / source
        self.region = _Catalogue(self)
        self.original = f"the text of {source}"
        self._place = source
        self._read: tuple[Stamp | None, _Source] | None = None

    @property
    def title(self) -> str:
        """How messages name the kind."""
        return f"the translation of {self._place}"

    def claims(self, file: Path) -> bool:
        """Return whether a file holds a translation: the source does not."""
        return file != self.source and catalogues.language_of(file) is not None

    def units(self, file: Path) -> Iterable[str]:  # every language has every text
        """Return the names of the source, in its order."""
        return tuple(self.read_source().texts)

    def inputs(self, unit: Unit) -> Mapping[str, str]:
        """Return what a translation was made from: the text, and what is said about it."""
        source = self.read_source()
        text, note = (texts.get(unit.name, "") for texts in (source.texts, source.notes))
        return {"the source text": text, "its note": note}

    def languages(self, file: Path) -> tuple[str, str]:
        """Return the tags that the names of both files have."""
        return catalogues.language_of(self.source) or "", catalogues.language_of(file) or ""

    def prompt(self, unit: Unit) -> str:
        """Return what is asked for."""
        return "\n".join(self.ask(unit, self._original(unit)))

    def extract(self, reply: str, unit: Unit) -> str:
        """Return the string of a reply."""
        return catalogues.read_reply(reply, self._original(unit).text)

    def check(self, unit: Unit) -> Iterable[Finding]:
        """Return what is wrong with a translation."""
        is_known = unit.name in self.read_source().texts
        return self.compare(self._original(unit), unit) if is_known else ()

    def _original(self, unit: Unit) -> catalogues.Original:
        source, is_form = self.read_source(), _ONE.search(unit.name) is not None
        language = self.languages(unit.path)[1].partition("-")[0]
        return catalogues.Original(
            source.texts.get(unit.name, ""),
            source.notes.get(unit.name, ""),
            may_lack_count=is_form and language not in catalogues.ONE_IS_MORE,
            may_add_count=is_form,
        )

    def is_metadata(self, name: str) -> bool:
        """Return whether a name stands for metadata, not for a string: ``@name`` in ARB files."""
        return self.source.suffix == ".arb" and name.startswith("@")

    def read_source(self) -> _Source:
        """Return the catalogue that is translated from, read again when it changed.

        Raises:
            UsageError: it is missing, or no JSON.
        """
        # Read again only when it changed: each of 5,000 units asks for it.
        last = stamp(self.source)
        if self._read is not None and self._read[0] == last:
            return self._read[1]
        try:
            strings = JsonStrings().find_paths(decode(self.source.read_bytes(), self._place))
        except (OSError, RegionError) as error:  # The last argument of both is the sentence.
            what = f"{self._place}, the source of translations: {error.args[-1]}"
            hint = getattr(error, "hint", f"correct `source` in {_TABLE}, or the file")
            raise UsageError(what, hint=hint) from None
        texts, notes = {}, {}
        for name, (_, text) in strings.items():
            if not self.is_metadata(name):
                texts[name] = text
            elif name.endswith(".description"):
                notes[name.removeprefix("@").removesuffix(".description")] = text
        source = _Source(
            {name: text for name, text in texts.items() if text.strip()},
            {name: path for name, (path, _) in strings.items()},
            notes,
        )
        self._read = last, source
        return source


def translation_kinds(entries: object, root: Path) -> Sequence[catalogues.Catalogues]:
    """Return the kinds that ``[[tool.pytest-regen.translations]]`` names.

    Raises:
        UsageError: an entry is wrong.
    """
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        expected = f"a list of tables, {_TABLE}"
        raise wrong_value("[tool.pytest-regen]", "translations", entries, expected)
    return [_kind({**entry}, root) for entry in entries]


def _kind(table: dict[str, Any], root: Path) -> catalogues.Catalogues:
    check_table(_TABLE, {"targets": None, **table}, _KEYS)
    source, targets = table.pop("source", ""), table.pop("targets")
    targets = [targets] if isinstance(targets, str) else targets
    # What the globs end in decides, because a .po file has its source texts in itself.
    are_gettext = {target.endswith(".po") for target in targets}
    if are_gettext == {True}:
        if source and not catalogues.is_tag(source):
            expected = 'of .po files the language of the msgids, such as "en"'
            raise wrong_value(_TABLE, "source", source, expected)
        with needs("translations", "catalogues of gettext"):
            from pytest_regen.kinds.gettext import Gettext
        return Gettext(targets, source or "en", **table)
    if True in are_gettext:
        expected = "globs of one format: give .po files a table of their own"
        raise wrong_value(_TABLE, "targets", targets, expected)
    if not (root / source).is_file():
        raise wrong_value(_TABLE, "source", source, f"the name of a file below {root}")
    return Translation(root, Path(source).as_posix(), targets, **table)
