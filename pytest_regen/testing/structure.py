"""The check that no text of a context becomes structure of the prompt."""

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from pytest_regen.context.text import BLANK_CHARACTERS
from pytest_regen.testing.canaries import CanaryFlow, canary_flows, flow_with, text_leaves
from pytest_regen.testing.hostile import HOSTILE_TEXTS
from pytest_regen.testing.observing import AgentFactory, Replies, observe
from pytest_regen.testing.verdicts import ContextLossError, sent_text, writing

__all__ = ["assert_structure_holds", "line_kinds"]

_REPLIES: Final = Replies()
_BLANK: Final = "".join(sorted(BLANK_CHARACTERS - {"\t"}))
_LONGEST_ID: Final = 60


def assert_structure_holds(
    make: AgentFactory,
    *,
    replies: Replies = _REPLIES,
    hostile: Iterable[str] = HOSTILE_TEXTS,
    skeleton: Callable[[str], object] | None = None,
) -> None:
    """Check that no text of the context becomes structure of the prompt.

    Args:
        make: makes the agent.
        replies: what the model says.
        hostile: texts to try in every leaf.
        skeleton: the structure of a prompt; two prompts have the same if the results are equal. By
            default the kinds of the lines that start like a heading, a bullet, a fence, a tag or a
            role. Give one that knows your delimiters if values keep their lines.

    Raises:
        ContextLossError: a text does; names the leaf and shows the text.
    """
    shape, take, script = skeleton or line_kinds, observe(make), writing(replies)
    wrong: list[str] = []
    for flow in canary_flows():
        plain = shape(sent_text("structure_holds", take(flow.request, script)))
        for text in hostile:
            if shape(take(_all_hostile(flow, text), script).text) != plain:
                leaves = (
                    path
                    for path in text_leaves(flow)
                    if shape(take(flow_with(flow, {path: _fit(path, text, 0)}), script).text)
                    != plain
                )
                wrong.append(f"{next(leaves, 'several leaves')}: {text[:60]!r}")
    if wrong:
        summary = "texts become structure of the prompt"
        raise ContextLossError("structure_holds", summary, wrong[:10])


def _all_hostile(flow: CanaryFlow, text: str) -> Any:  # noqa: ANN401 - a request
    leaves = text_leaves(flow)
    return flow_with(flow, {path: _fit(path, text, at) for at, path in enumerate(leaves)})


def _fit(path: str, text: str, number: int) -> str:
    """Return ``text`` so that it may stand in a leaf: ids and labels are unique and short."""
    # The end is what may be cut: a forged line comes early.
    return f"{text[:_LONGEST_ID]}{number}" if path.endswith(("id", "label")) else f"x{text}"


_STRUCTURE: Final = re.compile(
    r"(?P<heading>\#{1,6}(?=\s|$))|(?P<fence>```|~~~)|(?P<tag>[<\[][/|<!]?[A-Za-z]|\]\]>)"
    r"|(?P<rule>(?:-{3,}|={3,}|\*{3,}|_{3,})$)|(?P<bullet>[-*+]\s|\d+[.)]\s)|(?P<quote>>\s)"
    r"|(?P<table>\|.*\|)|(?P<role>(?:system|user|human|assistant|developer)\s*:)",
    re.IGNORECASE,
)


def line_kinds(prompt: str) -> tuple[str | None, ...]:
    """Return the kinds of the lines that start like structure, in order."""
    starts = (_STRUCTURE.match(line.strip(_BLANK)) for line in prompt.splitlines())
    return tuple(start.lastgroup for start in starts if start)
