"""What language models leave in answers that is no code: prose, fences, elisions, placeholders."""

import re
from typing import Final

from pytest_regen.languages.base import SyntaxFault
from pytest_regen.text import in_quotes

# A thing or a verb belongs to each, because "the rest" alone may be what a comment is about.
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
_DELIMITER: Final = re.compile(r"(?:BEGIN|END)_FIELDS\W*$")
# Placeholders of templates, because a model may copy what it should have filled in.
_TEMPLATE: Final = re.compile(
    r"%\{[^}\n]*\}$|\{(?:Class|Enum|Property|Field|Member|Type)?(?:Name|Description|Type)\}$"
)
_REVIEW: Final = re.compile(r"\[REVIEW\b[^\]]*\]|REVIEW:")
_FENCE: Final = re.compile(r"`{3,}|~{3,}")
_THINKING: Final = re.compile(r"</?think(?:ing)?>", re.IGNORECASE)
_MARKDOWN: Final = re.compile(r"(?:#{1,6} \w|[-*+] \S|\*\*|> |\d+\. )")
_CODE: Final = re.compile(r"[;{}\[\]=<>()\"|]")
_WORD: Final = re.compile(r"[A-Za-z\u2019'`*_-]+[,.:;!?]?$")
_PHRASE: Final = 3
"""Words that make a sentence of a line without any sign of code."""
_PLACEHOLDER: Final = re.compile(r"(?<![${])\{[A-Z]\w*\}|%\{")


def fault_of_comment(comment: str, line: int, *, is_documentation: bool) -> SyntaxFault | None:
    """Return the fault that a comment stands for code, or asks for review.

    Args:
        comment: with the signs that make it one.
        line: where it begins; counts from 1.
        is_documentation: its text comes from the document, so that nothing it says is at fault.
    """
    body = comment.strip("/*#").strip()
    shown = " ".join(comment.split())[:100]
    if is_documentation:
        return None
    # First, because a request for review may well tell of what was left out.
    if _REVIEW.search(body):
        return SyntaxFault(line, f"a comment asks for review: {shown}", "REVIEW")
    if _DELIMITER.match(body):
        message = f"the page delimiter {in_quotes(shown)} was left in the code"
    elif _TEMPLATE.match(body):
        message = f"the placeholder {in_quotes(shown)} was left in a comment"
    elif _is_elision(body):
        message = f"the comment {in_quotes(shown)} stands where code was left out; write that code"
    else:
        return None
    return SyntaxFault(line, message, "ARTIFACT")


def leftover(line: str) -> str | None:
    """Return why a line of illegal code is none; ``None`` where it may be code with a slip."""
    text = line.strip()
    shown = in_quotes(text[:80])
    if _THINKING.search(text):
        return "thinking was left in the answer; write the code alone"
    if _FENCE.search(text):
        return (
            "a second code fence was opened inside the first; "
            "write one fenced block with the code alone"
        )
    if text and _is_elision(text):
        return f"{shown} stands where code was left out; write that code"
    words = text.split()
    is_words = len(words) >= _PHRASE and not _CODE.search(text) and all(map(_WORD.match, words))
    # ``public string Name`` is code without its end: sentences begin or end like sentences.
    is_sentence = is_words and (text[0].isupper() or text.endswith((".", ":", "!")))
    if is_sentence or _MARKDOWN.match(text):
        return f"this is prose, not code: {shown}"
    if _PLACEHOLDER.search(text):
        return f"a template placeholder was left in the code: {shown}"
    return None


def _is_elision(body: str) -> bool:
    # Behind dashes and brackets too, because models write ``-- rest of the fields`` and ``[...]``.
    return bool(_ELISION.match(body.strip(" -\u2013\u2014([<{")))
