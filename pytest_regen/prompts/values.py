"""A prompt as a value: the stable unit of work (requirement 2, "Concepts and Terminology")."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self

from pytest_regen.canonical import canonical_hash

__all__ = ["OutputMode", "PageKey", "PromptEntry", "output_mode"]

OutputMode = Literal["full_class", "class_only", "fields_only", "enum_only", "enum_values_only"]


class PageKey(NamedTuple):
    """The identity of a page; unique in a store because type names are."""

    type_name: str
    page: int
    total_pages: int


def output_mode(*, is_enum: bool, is_root: bool, page: int) -> OutputMode:
    """Return what a page must declare: a whole shell on page 1, members only after it."""
    if is_enum:
        return "enum_only" if page == 1 else "enum_values_only"
    if page > 1:
        return "fields_only"
    return "full_class" if is_root else "class_only"


@dataclass(frozen=True, slots=True)
class PromptEntry:
    """One entry of ``prompts.json``: the exact text sent for one page, and what it must produce."""

    type_name: str
    is_root: bool
    page: int
    total_pages: int
    system: str
    user: str
    fields: tuple[str | int, ...]
    """JSON names or enum values that this page must produce."""
    prompt_hash: str

    @classmethod
    def of(
        cls,
        key: PageKey,
        *,
        is_root: bool,
        system: str,
        user: str,
        fields: tuple[str | int, ...],
    ) -> Self:
        """Return an entry with the hash of its text."""
        return cls(
            key.type_name,
            is_root,
            key.page,
            key.total_pages,
            system,
            user,
            fields,
            canonical_hash({"system": system, "user": user}),
        )

    @property
    def key(self) -> PageKey:
        """The identity of the page this prompt asks for."""
        return PageKey(self.type_name, self.page, self.total_pages)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the entry that ``to_json`` wrote."""
        return cls(
            **{**{name: data[name] for name in cls.__slots__}, "fields": tuple(data["fields"])}
        )

    def to_json(self) -> dict[str, Any]:
        """Return the entry of ``prompts.json``."""
        return {
            "type_name": self.type_name,
            "is_root": self.is_root,
            "page": self.page,
            "total_pages": self.total_pages,
            "system": self.system,
            "user": self.user,
            "fields": list(self.fields),
            "prompt_hash": self.prompt_hash,
        }
