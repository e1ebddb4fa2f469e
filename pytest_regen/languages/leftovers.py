"""What language models leave in answers that is no code: prose, fences, elisions, placeholders.

They are looked for by what a writer does, and believed only where the code is illegal, or in a
comment that is not documentation.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pytest_regen.languages.base import SyntaxFault
from pytest_regen.languages.diagnosis import SlipRepair
from pytest_regen.languages.trees import Node, text_of
from pytest_regen.text import in_quotes

_SUSPECT: Final = tuple(
    word.encode()
    for word in (
        *("...", "…", "%{", "_fields", "description}", "elided", "existing", "for brevity", "here"),
        *("name}", "omitted", "other ", "previous", "remain", "rest of", "review", "same as"),
        *("truncated", "type}", "unchanged", "more ", "additional "),
    )
)
"""Words without one of which no comment can be at fault; searching them is cheap."""
_SUSPECTS = re.compile(b"|".join(map(re.escape, _SUSPECT)))
_THINGS = r"(?:class|code|enum|fields?|members?|properties|property|types?|values?)"
_ELISION: Final = re.compile(
    r"(?:\.\.\.|…)"
    rf"|(?:and |plus )?(?:the )?(?:rest|remainder)(?: of (?:the |this |its )?(?:\w+ )?{_THINGS})\b"
    rf"|(?:the )?(?:all )?(?:other|remaining|additional|more|existing|previous) (?:\w+ )?{_THINGS}"
    r"\b.*\b(?:omitted|here|unchanged|elided|truncated|as before|the same|follow|not shown)\b"
    rf"|(?:existing|previous) {_THINGS}(?: here)?\W*$"
    r"|.*\b(?:omitted|elided|truncated) for brevity"
    rf"|{_THINGS} (?:omitted|elided|truncated|unchanged)\b"
    r"|same as (?:above|before)\W*$",
    re.IGNORECASE,
)
_DELIMITER = re.compile(r"(?:BEGIN|END)_FIELDS\W*$")
_TEMPLATE = re.compile(
    r"%\{[^}\n]*\}$|\{(?:Class|Enum|Property|Field|Member|Type)?(?:Name|Description|Type)\}$"
)
_REVIEW = re.compile(r"\[REVIEW\b[^\]]*\]|REVIEW:")
_WORDS = re.compile(r"[A-Za-z\u2019'`*_-]+[,.:;!?]?(?:\s|$)")
_PHRASE: Final = 3
_THINKING = re.compile(r"</?think(?:ing)?>", re.IGNORECASE)
_FENCE = re.compile(r"\s*(?:`{3,}|~{3,})[\w#+. -]*\s*$")
_PLACEHOLDER = re.compile(r"(?<![${])\{[A-Z]\w*\}|%\{")
_MARKDOWN = re.compile(r"(?:#{1,6} \w|[-*+] \S|\*\*|> |\d+\. |\|.*\|$|-{3,}$)")


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What tells code of one language from what was left beside it."""

    code_start: re.Pattern[str]
    """Matches where a line of code, legal or not, begins."""
    code_end: tuple[str, ...]
    """What a line of code ends with, and no sentence does."""
    documentation: tuple[str, ...]
    """What comments of documentation begin with: their text comes from the document."""
    has_descriptions: bool = False
    """Whether prompts ask for descriptions in them: whatever such a comment says is data."""

    def comment_faults(self, code: bytes, root: Node) -> Iterator[SyntaxFault]:
        """Yield a fault per comment that stands for code, and one per comment that asks for review.

        Only real comments count: the same words inside a string are data.
        """
        lowered = code.lower()
        if not any(word in lowered for word in _SUSPECT):
            return
        seen: set[int] = set()
        for match in _SUSPECTS.finditer(lowered):
            node = root.descendant_for_byte_range(match.start(), match.end())
            if node is None or node.type != "comment" or node.start_byte in seen:
                continue
            seen.add(node.start_byte)
            fault = self._comment_fault(text_of(node), node.start_point.row + 1)
            if fault:
                yield fault

    def _comment_fault(self, comment: str, line: int) -> SyntaxFault | None:
        is_documentation = comment.startswith(self.documentation)
        if is_documentation and self.has_descriptions:
            return None
        body = comment.strip("/*#").strip()
        shown = " ".join(comment.split())[:100]
        if _REVIEW.search(body) and not is_documentation:
            return SyntaxFault(line, f"a comment asks for review: {shown}", "REVIEW")
        if _DELIMITER.match(body):
            return SyntaxFault(
                line, f"the page delimiter {in_quotes(shown)} was left in the code", "ARTIFACT"
            )
        if _TEMPLATE.match(body):
            return SyntaxFault(
                line, f"the placeholder {in_quotes(shown)} was left in a comment", "ARTIFACT"
            )
        if not is_documentation and is_elision(body):
            message = (
                f"the comment {in_quotes(shown)} stands where code was left out; write that code"
            )
            return SyntaxFault(line, message, "ARTIFACT")
        return None

    def is_prose(self, line: str) -> bool:
        """Return whether a line that is no legal code reads as words to a person."""
        text = line.strip()
        if _MARKDOWN.match(text):
            return True
        if not text or self.code_start.match(text) or text.endswith(self.code_end):
            return False
        words = _WORDS.findall(text + " ")
        return len(words) >= _PHRASE or (bool(words) and text.endswith((":", "!", ".")))

    def leftover(self, line: str) -> str | None:
        """Return what is wrong with a line of illegal code that no compiler would ever take."""
        text = line.strip()
        if _THINKING.search(text):
            return "thinking was left in the answer; write the code alone"
        if is_fence(line) or "```" in text:
            return (
                "a second code fence was opened inside the first; "
                "write one fenced block with the code alone"
            )
        if text and is_elision(text):
            return f"{in_quotes(text[:80])} stands where code was left out; write that code"
        if self.is_prose(line):
            return f"this is prose, not code: {in_quotes(text[:80])}"
        if _PLACEHOLDER.search(text):
            return f"a template placeholder was left in the code: {in_quotes(text[:80])}"
        return None


def is_elision(body: str) -> bool:
    """Return whether the text of a comment stands for code that was left out."""
    return bool(_ELISION.match(body.strip(" -\u2013\u2014([<{")))


def is_fence(line: str) -> bool:
    """Return whether a line is the fence of a Markdown code block."""
    return bool(_FENCE.match(line))


_ENTITY: Final = re.compile(r"&(?:lt|gt|amp|quot|apos|#39|#34);")
_ENTITIES: Final = {
    "&lt;": "<",
    "&gt;": ">",
    "&amp;": "&",
    "&quot;": '"',
    "&#34;": '"',
    "&apos;": "'",
    "&#39;": "'",
}
_JSON: Final = re.compile(r'\s*(?:\{\s*"[^"\n]{1,60}"\s*:|\[\s*(?:"|\{\s*"))')


def out_of_json(code: bytes) -> SlipRepair | None:
    """Return blanks for a JSON value: whatever it holds is text, not code."""
    text = code.decode("utf-8", "replace")
    if not _JSON.match(text[:200]):
        return None
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        if not re.search(r'\\n|\\"', text):
            return None
    message = (
        "the answer is a JSON value that holds the code as a string; answer with the code itself, "
        "not wrapped in JSON"
    )
    return SlipRepair(
        re.sub(rb"[^\r\n]", b" ", code), (SyntaxFault(1, message, "ARTIFACT", in_member=False),)
    )


def without_entities(code: bytes) -> SlipRepair | None:
    """Return code that was escaped as HTML as it was meant."""
    if b"&" not in code:
        return None
    lines = code.decode("utf-8", "surrogateescape").split("\n")
    at: list[int] = []
    for row, line in enumerate(lines):
        if _ENTITY.search(line) and not line.lstrip().startswith(("//", "#")):
            at.append(row)
            lines[row] = _ENTITY.sub(lambda match: _ENTITIES[match[0]], line)
    if not at:
        return None
    found = " and ".join(dict.fromkeys(_ENTITY.findall(code.decode("utf-8", "replace"))))
    meant = " and ".join(dict.fromkeys(_ENTITIES[entity] for entity in found.split(" and ")))
    message = f"the code is HTML-escaped: write {meant} where the answer has {found}"
    faults = (SyntaxFault(at[0] + 1, message, in_member=False),)
    return SlipRepair("\n".join(lines).encode("utf-8", "surrogateescape"), faults)
