"""Right translations with one fault put into them."""

import re
from collections.abc import Iterator

from pytest_regen.kinds import messages

__all__ = ["harms"]


def harms(source: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield texts with one fault each, and the code of the fault.

    A placeholder lost or renamed, a tag lost, a remark added, the source copied, a brace lost.
    """
    is_icu = messages.is_icu(source)
    for match in re.finditer(r"\{\{?\w+\}\}?|\$\{\w+\}|%\(\w+\)s|%s|%d", text):
        if is_icu and text.count(match[0]) > 1:
            continue
        yield text.replace(match[0], ""), "PLACEHOLDER"
        renamed = re.sub(r"(\w)([})])", r"\1x\2", match[0], count=1)
        if renamed != match[0]:
            yield text.replace(match[0], renamed), "PLACEHOLDER"
    for match in re.finditer(r"</\w+>", text):
        yield text.replace(match[0], ""), "TAGS"
    yield f"{text}\n\nI kept the tone informal.", "LENGTH"
    if is_icu:
        yield text.replace("}", "", 1), "PLACEHOLDER"
    if len([word for word in messages.words(source) if len(word) > 3]) > 3:
        yield source, "UNTRANSLATED"
