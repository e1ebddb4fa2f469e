"""Tables of ``[tool.pytest-regen]`` that describe kinds, read key by key."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pytest_regen.errors import UsageError
from pytest_regen.text import quoted


class Table(NamedTuple):
    """One entry of ``functions`` or ``translations``."""

    title: str
    """How messages name it: ``[[tool.pytest-regen.functions]]``."""
    hint: str
    """How it is written."""
    entry: Mapping[str, object] = {}

    def check_keys(self, keys: Sequence[str]) -> None:
        """Refuse what is no key of the table.

        Raises:
            UsageError: there is another key.
        """
        if unknown := sorted(self.entry.keys() - set(keys)):
            raise UsageError(
                f"{self.title} has the key {unknown[0]!r}",
                why=f"it knows {', '.join(sorted(keys))}",
                hint="take it out",
            )

    def text(self, key: str, form: str) -> str:
        """Return a text, empty where there is none; ``form`` says what it looks like."""
        value = self.entry.get(key, "")
        if not isinstance(value, str):
            raise self.wrong(key, value, form)
        return value

    def texts(self, key: str, form: str, *, least: int = 0) -> tuple[str, ...]:
        """Return a list of texts, or one text as a list; at least so many."""
        value = self.entry.get(key, [] if least == 0 else None)
        # A list of one is often written as the text alone.
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list) or len(texts) < least:
            raise self.wrong(key, value, form)
        if not all(isinstance(text, str) and text for text in texts):
            raise self.wrong(key, value, form)
        return tuple(texts)

    def wrong(self, key: str, value: object, form: str) -> UsageError:
        """Return the error that a value is not of the form that it should be of."""
        message = f"{self.title} has {key} = {quoted(value)[:200]}"
        return UsageError(message, why=f"{key} is {form}", hint=self.hint)
