"""A reply read as the code of its place: body, function, excerpt, with or without a fence."""

from tables import each

from pytest_regen.kinds.functions.prompts import code_in
from pytest_regen.kinds.functions.source import read_module

MODULE = '''\
import re


class Clock:
    def tell(self, text: str) -> str:
        """Return the time.

        >>> Clock().tell("x")
        'x'
        """
        # [REGEN:BEGIN Clock.tell]
        raise NotImplementedError
        # [REGEN:END Clock.tell]


def tell(text: str, *, width: int = 3) -> str:
    """Return the time.

    >>> tell("x")
    'x'
    """
    # [REGEN:BEGIN tell]
    raise NotImplementedError
    # [REGEN:END tell]


def part(text: str) -> str:
    """Return a part."""
    text = text.strip()
    # [REGEN:BEGIN part]
    # [REGEN:END part]
    return text
'''
BODY = 'if not text:\n    # nothing said\n    return """a\n  b"""\nreturn text[:width]'
HEAD = "def tell(text: str, *, width: int = 3) -> str:\n"
DOCSTRING = '    """Return the time.\n\n    >>> tell("x")\n    \'x\'\n    """\n'


def code(reply: str, name: str = "tell") -> str:
    """Return the code that a reply gives for a unit."""
    module = read_module(MODULE)
    return code_in(reply, module.places[name])


def indented(text: str = BODY, by: str = "    ") -> str:
    """Return code indented, but for the lines inside its string."""
    return "\n".join(line if line.startswith("  b") else f"{by}{line}" for line in text.split("\n"))


def fenced(text: str, language: str = "python") -> str:
    return f"```{language}\n{text}\n```"


@each(
    "reply",
    [
        BODY,
        fenced(BODY),
        f"Here it is:\n\n{fenced(BODY)}\n\nIt cuts the text.",
        f"{fenced(BODY)}\n\nUse it so:\n\n{fenced('print(tell(chr(65)))')}",
        fenced(HEAD + DOCSTRING + indented()),
        fenced(
            MODULE.replace(
                "    raise NotImplementedError\n    # [REGEN:END tell]",
                f"{indented()}\n    # [REGEN:END tell]",
            )
        ),
        f"<thinking>\n```python\nreturn 0\n```\n</thinking>\n{fenced(BODY)}",
    ],
)
def test_every_form_gives_the_same_code(reply: str) -> None:
    assert code(reply) == BODY


def test_imports_and_helpers_move_into_the_body() -> None:
    reply = (
        "import json\nimport re\n\n_WORD = 3\n\n\ndef _helper(x):\n    return json.dumps(x)\n\n\n"
    )
    reply += f"{HEAD}    return _helper(text)[:_WORD]\n"

    assert code(fenced(reply)) == (
        "import json\n\n_WORD = 3\n\ndef _helper(x):\n    return json.dumps(x)\n\n"
        "return _helper(text)[:_WORD]"
    )


METHOD = 'def tell(self, text):\n    """Return the time."""\n    return text'
HELPER = "def tell(n):\n    return n or tell(n - 1)\n\nreturn str(tell(len(text)))"


@each(
    ("name", "reply", "expected"),
    [
        ("Clock.tell", fenced(METHOD), "return text"),
        ("Clock.tell", fenced("class Clock:\n" + indented(METHOD)), "return text"),
        ("tell", fenced(HELPER), HELPER),
        ("tell", "I cannot write this.", "I cannot write this."),
        (
            "tell",
            fenced(HEAD + "    # first\n\n    # second\n    return text  # last"),
            "# first\n\n# second\nreturn text  # last",
        ),
    ],
)
def test_the_code_of_its_place_is_found(name: str, reply: str, expected: str) -> None:
    """A method alone or in its class; a helper of the same name, comments and no code stay."""
    assert code(reply, name) == expected
