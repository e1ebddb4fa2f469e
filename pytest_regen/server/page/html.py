"""HTML as values: text is escaped where it is put in, markup made here is not."""

from collections.abc import Iterable
from html import escape

_VOID = frozenset({"input", "link", "meta"})


class Html(str):
    """Markup. Only this module makes it; any other string is text."""

    __slots__ = ()


Child = str | None | Iterable["Child"]
"""What an element holds: markup, text to be escaped, nothing, or several of these."""


def element(name: str, children: Child = None, /, **attributes: str | int | bool | None) -> Html:
    """Return one element.

    Args:
        name: of the element.
        children: what it holds.
        attributes: their names with `_` for `-`, and one at the end for a word of Python
            (`class_`); `True` is an attribute without value, `False` and `None` none at all.
    """
    written = ""
    for key, value in attributes.items():
        if value is not None and value is not False:
            word = key.rstrip("_").replace("_", "-")
            written += f" {word}" if value is True else f' {word}="{escape(str(value))}"'
    end = "" if name in _VOID else f"{join(children)}</{name}>"
    return Html(f"<{name}{written}>{end}")


def join(children: Child) -> Html:
    """Return children one after the other, text escaped."""
    if children is None:
        return Html("")
    if isinstance(children, Html):
        return children
    if isinstance(children, str):
        return Html(escape(children))
    return Html("".join(join(child) for child in children))


def isolate(text: str) -> Html:
    """Return text of unknown direction that cannot turn its surroundings around."""
    return element("bdi", text)


def document(language: str, head: Child, body: Child) -> Html:
    """Return a whole page."""
    return Html(
        "<!doctype html>\n" + element("html", (element("head", head), body), lang=language) + "\n"
    )
