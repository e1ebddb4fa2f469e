"""What a fault of the reference writer is: where it can be made, and what must be said about it."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from reference_writer_csharp import Draft, Member
from reference_writer_request import ENUM_MODES, OBJECT_MODES, PageRequest, Unit

__all__ = [
    "ALL",
    "FIRST",
    "FIRST_OBJECT",
    "PLAIN_CLASS",
    "Edit",
    "Mistake",
    "PageEdit",
    "Suits",
    "in_field",
    "in_page",
    "in_text",
]

Edit = Callable[[Draft, Member], None]
PageEdit = Callable[[Draft], None]
Suits = Callable[[PageRequest, Unit], bool]

FIRST_OBJECT = frozenset({"full_class", "class_only"})
FIRST = FIRST_OBJECT | {"enum_only"}
ALL = OBJECT_MODES | ENUM_MODES
PLAIN_CLASS: Mapping[str, Any] = {
    "shape": "class",
    "comments": "none",
    "descriptions": False,
}
"""A shape in which a fault made by editing text hits what it is meant to hit."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """One fault.

    It is either in one field or value of the page, the victim (``edit``), or in the page as a whole
    (``edit_page``).
    """

    name: str
    expects: tuple[frozenset[str], ...]
    """Of each set, at least one code must be reported for the page."""
    edit: Edit | None = None
    edit_page: PageEdit | None = None
    modes: frozenset[str] = OBJECT_MODES
    suits: Suits = lambda _request, _unit: True
    """Which units can be the victim."""
    suits_page: Callable[[PageRequest], bool] = lambda _request: True
    names_also: Callable[[PageRequest, Unit | None], tuple[str, ...]] = lambda _request, _unit: ()
    """Further names under which the fault may be reported."""
    names_field: bool = True
    """Whether an issue must name the victim."""
    style: Mapping[str, Any] = field(default_factory=dict)

    @property
    def codes(self) -> frozenset[str]:
        """Every code that may name the fault."""
        return frozenset().union(*self.expects)

    def applies(self, request: PageRequest) -> bool:
        """Return whether the fault can be made on that page."""
        if request.mode not in self.modes or not self.suits_page(request):
            return False
        return self.edit is None or self.victim(request) is not None

    def victim(self, request: PageRequest, skip: int = 0) -> Unit | None:
        """Return the unit that is hit: of those that suit, number ``skip``, round and round."""
        suitable = [unit for unit in request.units if self.suits(request, unit)]
        return suitable[skip % len(suitable)] if suitable and self.edit else None

    def fields(self, request: PageRequest, skip: int = 0) -> tuple[str, ...]:
        """Return the names of which an issue must give one; none where any place will do."""
        if not self.names_field:
            return ()
        victim = self.victim(request, skip)
        own = () if victim is None else (str(victim.wire),)
        return (*own, *self.names_also(request, victim))

    def make(self, draft: Draft, skip: int = 0) -> None:
        """Spoil the draft."""
        draft.style = draft.style.with_(self.style)
        if self.edit_page:
            self.edit_page(draft)
        victim = self.victim(draft.request, skip)
        if self.edit and victim:
            self.edit(draft, next(m for m in draft.members if m.wire == victim.wire))


def in_field(name: str, codes: str, edit: Edit, **options: Any) -> Mistake:
    """Return a fault of one field or value.

    ``codes``: ``A|B`` for one of them, ``A+B`` for each of them.
    """
    return Mistake(name, _expects(codes), edit=edit, **options)


def in_page(name: str, codes: str, edit_page: PageEdit, **options: Any) -> Mistake:
    """Return a fault of the page as a whole."""
    return Mistake(name, _expects(codes), edit_page=edit_page, **options)


def in_text(name: str, change: Callable[[str], str], **options: Any) -> Mistake:
    """Return a fault of syntax in the text of one member that is written plainly."""

    def edit(_draft: Draft, member: Member) -> None:
        member.edit = change

    defaults: dict[str, Any] = {"suits": _has_plain_name, "names_field": False}
    return in_field(name, "SYNTAX", edit, **(defaults | options), style=PLAIN_CLASS)


def _expects(codes: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(group.split("|")) for group in codes.split("+"))


def _has_plain_name(_request: PageRequest, unit: Unit) -> bool:
    return bool(re.fullmatch(r"\w+", str(unit.wire), re.ASCII))
