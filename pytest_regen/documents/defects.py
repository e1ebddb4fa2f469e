"""What is wrong or doubtful in an API description: collected, and shown all at once."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Defect", "DefectLog", "Severity"]

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True, order=True)
class Defect:
    """One thing in a document that is wrong, or that the IR cannot say."""

    where: str
    """JSON pointer after ``#``; the file's name stands before it where that is another."""
    message: str
    severity: Severity = "warning"
    """``error``: the document is broken here. ``warning``: readable, but a person should look
    (issue code REVIEW)."""
    detail: str = ""
    """More lines, where the message alone does not say it all."""

    def to_json(self) -> dict[str, str]:
        """Return the entry that ``generate --dry-run --json`` prints."""
        data = {"where": self.where, "message": self.message, "severity": self.severity}
        return {**data, "detail": self.detail} if self.detail else data

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"


@dataclass(slots=True)
class DefectLog:
    """Collects defects; each is kept once, however often its place is visited."""

    _seen: dict[Defect, None] = field(default_factory=dict)

    def error(self, where: object, message: str) -> None:
        """Note that the document is broken at ``where``."""
        self._seen[Defect(str(where), message, "error")] = None

    def review(self, where: object, message: str, detail: str = "") -> None:
        """Note that the IR says less at ``where`` than the document does."""
        self._seen[Defect(str(where), message, "warning", detail)] = None

    def extend(self, defects: Iterable[Defect]) -> None:
        """Take over defects found elsewhere."""
        self._seen.update(dict.fromkeys(defects))

    def sorted(self) -> tuple[Defect, ...]:
        """Return all of them by place, whatever the order in which they were met."""
        return tuple(sorted(self._seen))
