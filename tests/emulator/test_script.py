"""A script says which request gets which reply, and in which order."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from emulator_requests import body, said, send, text, user
from tables import each

from pytest_regen.emulator import (
    BatchStep,
    EmulatedReply,
    Emulator,
    Fault,
    Match,
    Rule,
    Script,
    Step,
    load_script,
)
from pytest_regen.emulator.limits import Clock
from pytest_regen.errors import UsageError

WHOLE = """
version: 1
rules:
  - name: overloaded twice
    match: {model: claude-opus-*, system: "Be brief", user: hello, turn: 1}
    replies:
      - fault: 529
        times: 2
      - Hello.
  - match: {pattern: 'type\\s+(Pet|Order)'}
    count: request
    replies:
      - fault: {status: 429, retry_after: 7, retry_after_ms: 1.5, should_retry: false,
                error_code: enforced_spend_limit_reached, message: No more., type: rate_limit_error,
                headers: {x-extra: "1"}, delay: 0.5}
      - fault: {kind: cut, reply: {text: Half an answer, chunks: 4}, after: 2}
      - file: pet.cs
        stop_reason: max_tokens
        thinking: Hm.
        output_tokens: 12
        delay: 0.1
        chunks: [class, " Pet {}"]
        chunk_delay: 0.2
        check_schema: false
        tools: [{name: look, input: {at: it}}]
      - text: Refused.
        stop_reason: refusal
        category: cyber
        explanation: No.
  - replies: [Whatever.]
batches: [{fault: {kind: drop}, times: 2, unlisted: 1}, {seconds: 3}]
"""


@pytest.fixture
def script(tmp_path: Path) -> Script:
    (tmp_path / "pet.cs").write_text("class Pet {}", "utf-8")
    path = tmp_path / "replies.yaml"
    path.write_text(WHOLE, "utf-8")
    return load_script(path)


def test_every_key_is_read(script: Script) -> None:
    """The values are those a Python script would use."""
    first, second, last = script.rules
    batches = [script.next_batch() for _ in range(4)]

    assert first.match == Match("claude-opus-*", "Be brief", "hello", turn=1)
    assert first.steps == [Step(Fault(529), 2), Step(EmulatedReply("Hello."))]
    limited, cut, reply, refused = (step.answer for step in second.steps)
    assert isinstance(limited, Fault)
    assert (limited.retry_after, limited.retry_after_ms, limited.should_retry) == (7, 1.5, False)
    assert isinstance(cut, Fault)
    assert cut == Fault(kind="cut", reply=EmulatedReply("Half an answer", chunks=4), after=2)
    assert isinstance(reply, EmulatedReply)
    assert (reply.text, reply.thinking, reply.output_tokens) == ("class Pet {}", "Hm.", 12)
    assert reply.tool_uses[0].input == {"at": "it"}
    assert refused == EmulatedReply("Refused.", "refusal", category="cyber", explanation="No.")
    assert last == Rule([Step(EmulatedReply("Whatever."))])
    assert batches[:2] == [BatchStep(fault=Fault(kind="drop"), unlisted=1, times=2)] * 2
    assert batches[2:] == [BatchStep(seconds=3)] * 2


@each(
    ("match", "fields", "accepts"),
    [
        (Match(), {}, True),
        (Match(model="gpt-*"), {}, False),
        (Match(system="rules"), {"system": [text("The rules.")]}, True),
        (Match(system="rules"), {"messages": [user("rules")]}, False),
        (Match(user="two"), {"messages": [user("one"), user([text("two")])]}, True),
        (Match(user="one"), {"messages": [user("one"), user("two")]}, False),
        (Match(text="one"), {"messages": [user("one"), user("two")]}, True),
        (Match(pattern="one.two"), {"messages": [user("one"), user("two")]}, True),
        (Match(turn=1), {"messages": [user("one"), user("two")]}, False),
        (Match(model="claude-*", turn=2), {}, False),
    ],
)
def test_a_match_holds_in_every_field(match: Match, fields: dict[str, Any], accepts: bool) -> None:  # noqa: FBT001 - parametrized
    """Each field that is given must hold, where it looks."""
    assert match.accepts(body(**fields)) is accepts


def test_requests_walk_through_the_steps_together_or_each_on_its_own() -> None:
    """Whatever the order of threads; the last step stays."""
    steps = [Step(Fault(529), times=2), Step("Done.")]
    together, apart = Script([Rule(steps)]), Script([Rule(steps, count="request")])
    asked = [body(messages=[user(str(number))]) for number in range(10)] * 4

    with ThreadPoolExecutor(8) as pool:
        told = [list(pool.map(script.find, asked)) for script in (together, apart)]

    assert [answers.count(Fault(529)) for answers in told] == [2, 20]
    assert [answers.count("Done.") for answers in told] == [38, 20]


def test_a_request_that_no_rule_foresees_is_refused_once() -> None:
    """The message shows what was asked; a retry would not help."""
    script = Script([Rule([Step("x")], Match(text="never"))], path=Path("replies.yaml"))
    core = Emulator(script=script, clock=Clock(0))

    response = send(core, body(messages=[user("Who are you?")]))

    assert response.status == 400
    assert response.headers["x-should-retry"] == "false"
    message = said(response)["error"]["message"]
    assert "no rule of replies.yaml matches" in message
    assert "Who are you?" in message


@each(
    ("content", "complaint"),
    [
        ("rules: !!python/object:os.system {}", "cannot read the script"),
        ("", "the file is None: Input should be an object"),
        ("version: 1\nrules: [{match: {usr: x}, replies: [x]}]", "rules[0].match.usr is unknown"),
        ("version: 1\nrules: [{replies: [{file: none.cs}]}]", "file cannot be read"),
        (
            "version: 1\nrules: [{replies: [{fault: 529, text: x}]}]",
            "rules[0].replies[0] is {'fault': 529, 'text': 'x'}: Value error, only times stands",
        ),
        (
            "version: 1\nrules: [{replies: [{fault: 200}]}]",
            "fault is {'status': 200}: Value error, a fault has a status",
        ),
        ("version: 1\nrules: [{replies: [{text: x, chunks: [y]}]}]", "must join to the text"),
    ],
)
def test_a_wrong_script_is_refused_by_place(tmp_path: Path, content: str, complaint: str) -> None:
    path = tmp_path / "replies.yaml"
    path.write_text(content, "utf-8")

    with pytest.raises(UsageError) as caught:
        load_script(path)

    assert str(path) in str(caught.value)
    assert complaint in str(caught.value)
    shortest = caught.value.hint.partition("the shortest script is ")[2]
    path.write_text(shortest, "utf-8")
    assert load_script(path).rules[0].steps == [Step(EmulatedReply("Hello."))]
