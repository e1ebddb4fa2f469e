"""A prompt as a value: the stable unit of work (requirement 2, "Concepts and Terminology")."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, NamedTuple, Self

from pytest_regen.canonical import canonical_hash

OutputMode = Literal[
    "full_class", "class_only", "fields_only", "enum_only", "enum_values_only", "alias_only"
]


def clip(text: str, limit: int) -> tuple[str, str]:
    """Return the first ``limit`` characters of ``text`` and a note, empty if all of it is there."""
    if len(text) <= limit:
        return text, ""
    return text[:limit], f"first {limit} of {len(text)} characters"


def list_some(items: Sequence[str], limit: int) -> str:
    """Return about ``limit`` characters of a list: cut between two items, never inside one."""
    listed: list[str] = []
    used = 0
    for item in items:
        used += len(item) + 2
        if used > limit and listed:
            return f"{', '.join(listed)} and {len(items) - len(listed)} more"
        listed.append(item)
    return ", ".join(listed)


class PageKey(NamedTuple):
    """The identity of a page; unique in a store because type names are."""

    type_name: str
    page: int
    total_pages: int


def output_mode(kind: str, *, is_root: bool, page: int) -> OutputMode:
    """Return what a page must declare: a whole shell on page 1, members only after it."""
    if kind == "alias":
        return "alias_only"
    if kind == "enum":
        return "enum_only" if page == 1 else "enum_values_only"
    if page > 1:
        return "fields_only"
    return "full_class" if is_root else "class_only"


@dataclass(frozen=True, slots=True)
class PromptEntry:
    """One entry of ``prompts.json``: the exact text sent for one page, and what it must produce."""

    type_name: str
    """The type, as the source declares it."""
    is_root: bool
    """Whether the type is that of the response itself."""
    page: int
    """Counts from 1."""
    total_pages: int
    """Of this type."""
    system: str
    """The system prompt."""
    user: str
    """The user message."""
    fields: tuple[str | int, ...]
    """JSON names or enum values that this page must produce."""
    prompt_hash: str
    """Of ``system`` and ``user``."""
    type_hash: str | None = None
    """Of the type's IR that the prompt was made from; ``None`` where the file does not say."""
    entry_hash: str | None = None
    """Of all of the above; another one means that somebody edited the entry."""

    @classmethod
    def of(
        cls,
        key: PageKey,
        *,
        is_root: bool,
        system: str,
        user: str,
        fields: tuple[str | int, ...],
        type_hash: str | None = None,
    ) -> Self:
        """Return an entry with the hashes of its text and of itself.

        Args:
            key: the page it asks for.
            is_root: whether the type is that of the response.
            system: the system prompt.
            user: the user message.
            fields: JSON names or enum values that the page must produce.
            type_hash: of the type's IR that the prompt is made from.
        """
        pages = key.page, key.total_pages
        text_hash = _text_hash(system, user)
        entry = cls(key.type_name, is_root, *pages, system, user, fields, text_hash, type_hash)
        return replace(entry, entry_hash=entry._computed_hash)

    @property
    def key(self) -> PageKey:
        """The identity of the page this prompt asks for."""
        return PageKey(self.type_name, self.page, self.total_pages)

    @property
    def is_edited(self) -> bool:
        """Whether the entry is not the one that was made: its text or its fields were edited."""
        # Entries of older stores have no hash of the whole.
        return self.prompt_hash != _text_hash(self.system, self.user) or self.entry_hash not in (
            None,
            self._computed_hash,
        )

    @property
    def _computed_hash(self) -> str:
        place = [self.type_name, self.is_root, self.page, self.total_pages]
        return canonical_hash([*place, list(self.fields), self.prompt_hash, self.type_hash])

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the entry that ``to_json`` wrote."""
        values = {field.name: data[field.name] for field in fields(cls) if field.name in data}
        return cls(**{**values, "fields": tuple(data["fields"])})

    def to_json(self) -> dict[str, Any]:
        """Return the entry of ``prompts.json``."""
        data = {field.name: getattr(self, field.name) for field in fields(self)}
        data["fields"] = list(self.fields)
        # As it was read: an older file must not change because a newer release read it.
        if self.entry_hash is None:
            del data["type_hash"], data["entry_hash"]
        return data


def _text_hash(system: str, user: str) -> str:
    return canonical_hash({"system": system, "user": user})
