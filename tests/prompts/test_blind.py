"""A reader who sees the prompt and its correction alone can say what to change, for each fault.

The answers were written by a language model that was given the two messages of each case and
nothing else; they are no recordings from an API. A correction that reads otherwise is to be read by
somebody again.
"""

import json
from pathlib import Path

from blind_cases import CASES, Case, sent, unsaid
from tables import each

from pytest_regen.text import quoted

KEPT = json.loads(Path(__file__).with_name("blind_answers.json").read_text("utf-8"))
ANSWERED = {(one["case"], "\n".join(one["correction"])): one for one in KEPT["answers"]}


@each("case", CASES, ids=lambda case: case.name)
def test_a_reader_says_what_to_change(case: Case) -> None:
    """The correction of today names each field at fault; who read it named the change as well."""
    user, block = sent(case.name)
    prompt = user.removeprefix(block)
    kept = ANSWERED[case.name, block]

    assert all(quoted(field) in block for field, _ in case.expected if field)
    for section in ("FIELDS", "ENUM VALUES", "NESTED TYPES", "TYPE REFERENCE"):
        if section in block.rpartition("\n\n")[2]:
            assert f"\n{section}:" in prompt
    assert not unsaid(case, "\n".join(kept["answer"]))
    assert kept["verdict"] == "understood"
