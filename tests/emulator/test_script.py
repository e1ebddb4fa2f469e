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

    assert first.match == Match("claude-opus-*", "Be brief", "hello", turn=1)
    assert first.steps == [Step(Fault(529), 2), Step(EmulatedReply("Hello."))]
    limited, cut, reply, refused = (step.answer for step in second.steps)
    assert isinstance(limited, Fault)
    assert (limited.retry_after, limited.retry_after_ms, limited.should_retry) == (7, 1.5, False)
    assert isinstance(cut, Fault)
    assert (cut.kind, cut.reply.text, cut.reply.chunks, cut.after) == (
        "cut",
        "Half an answer",
        4,
        2,
    )
    assert isinstance(reply, EmulatedReply)
    assert (reply.text, reply.thinking, reply.output_tokens) == ("class Pet {}", "Hm.", 12)
    assert reply.tool_uses[0].input == {"at": "it"}
    assert refused == EmulatedReply("Refused.", "refusal", category="cyber", explanation="No.")
    assert last == Rule([Step(EmulatedReply("Whatever."))])


def test_faults_come_first_and_the_last_reply_stays(script: Script) -> None:
    asked = body(model="claude-opus-5-5", system="Be brief.", messages=[user("hello you")])

    told = [script.find(asked) for _ in range(5)]

    assert told == [Fault(529)] * 2 + [EmulatedReply("Hello.")] * 3


@each(
    ("match", "fields", "accepts"),
    [
        (Match(), {}, True),
        (Match(model="claude-*"), {}, True),
        (Match(model="gpt-*"), {}, False),
        (Match(system="rules"), {"system": "The rules."}, True),
        (Match(system="rules"), {"system": [text("The rules.")]}, True),
        (Match(system="rules"), {"messages": [user("rules")]}, False),
        (Match(user="two"), {"messages": [user("one"), user([text("two")])]}, True),
        (Match(user="one"), {"messages": [user("one"), user("two")]}, False),
        (Match(text="one"), {"messages": [user("one"), user("two")]}, True),
        (Match(pattern="one.two"), {"messages": [user("one"), user("two")]}, True),
        (Match(turn=2), {"messages": [user("one"), user("two")]}, True),
        (Match(turn=1), {"messages": [user("one"), user("two")]}, False),
        (Match(model="claude-*", turn=2), {}, False),
    ],
)
def test_a_match_holds_in_every_field(match: Match, fields: dict[str, Any], accepts: bool) -> None:  # noqa: FBT001 - parametrized
    """Each field that is given must hold, where it looks."""
    assert match.accepts(body(**fields)) is accepts


def test_each_request_may_walk_on_its_own() -> None:
    script = Script([Rule([Step(Fault(529)), Step("Done.")], count="request")])
    asked = [body(messages=[user(str(number))]) for number in range(20)] * 2

    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(script.find, asked))

    assert told.count(Fault(529)) == told.count("Done.") == 20


def test_all_requests_together_walk_through_the_steps() -> None:
    script = Script([Rule([Step(str(number)) for number in range(40)])])

    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(script.find, [body()] * 40))

    assert sorted(map(str, told)) == sorted(str(number) for number in range(40))


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
        ("rules: [", "is no YAML"),
        ("", "the file is None: Input should be an object"),
        ("version: 2\nrules: [{replies: [x]}]", "version is 2: Input should be 1"),
        ("version: 1", "rules is {'version': 1}: Field required"),
        (
            "version: 1\nrules: [{replies: []}]",
            "rules[0].replies is []: List should have at least 1 item",
        ),
        ("version: 1\nrules: [{match: {usr: x}, replies: [x]}]", "rules[0].match.usr is unknown"),
        ("version: 1\nrules: [{match: {pattern: '('}, replies: [x]}]", "rules[0].match is"),
        ("version: 1\nrules: [{count: all, replies: [x]}]", "rules[0].count is 'all'"),
        (
            "version: 1\nrules: [{replies: [{text: 1}]}]",
            "replies[0].text is 1: Input should be a valid string",
        ),
        ("version: 1\nrules: [{replies: [{text: x, delay: -1}]}]", "must not be negative"),
        ("version: 1\nrules: [{replies: [{text: x, file: y}]}]", "has both text and file"),
        ("version: 1\nrules: [{replies: [{file: none.cs}]}]", "file cannot be read"),
        (
            "version: 1\nrules: [{replies: [{fault: 529, text: x}]}]",
            "rules[0].replies[0] is {'fault': 529, 'text': 'x'}: Value error, only times stands",
        ),
        (
            "version: 1\nrules: [{replies: [{fault: {kind: cut, reply: {file: none.cs}}}]}]",
            "rules[0].replies[0].fault is",
        ),
        (
            "version: 1\nrules: [{replies: [{fault: {kind: boom}}]}]",
            "fault.kind is 'boom': Input should be 'status', 'drop'",
        ),
        (
            "version: 1\nrules: [{replies: [{fault: {status: '529'}}]}]",
            "fault.status is '529': Input should be a valid integer",
        ),
        (
            "version: 1\nrules: [{replies: [{fault: 200}]}]",
            "fault is {'status': 200}: Value error, a fault has a status",
        ),
        (
            'version: 1\nrules: [{replies: [{fault: {headers: {a: "b\\r\\nc: d"}}}]}]',
            "the header 'a' cannot be sent with the value",
        ),
        (
            "version: 1\nrules: [{replies: [{text: x, tools: [{nam: y}]}]}]",
            "a tool use has a name and an input, not {'nam': 'y'}",
        ),
        ("version: 1\nrules: [{replies: [{text: x, chunks: 0}]}]", "at least 1 character"),
        ("version: 1\nrules: [{replies: [{text: x, chunks: [y]}]}]", "must join to the text"),
        ("version: 1\nrules: [{replies: [x]}]\nbatches: [{secs: 1}]", "batches[0].secs is unknown"),
        ("version: 1\nrules: [{replies: [x]}]\nbatches: [{fault: 200}]", "batches[0].fault is"),
        ("version: 1\nrules: !!python/object:os.system {}", "is no YAML"),
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


def test_calls_that_create_batches_walk_through_steps_of_their_own(tmp_path: Path) -> None:
    """Each step counts as often as it says, and the last one stays."""
    path = tmp_path / "replies.yaml"
    path.write_text(
        "version: 1\nrules: [{replies: [x]}]\n"
        "batches: [{fault: {kind: drop}, times: 2, unlisted: 1}, {seconds: 3}]",
        "utf-8",
    )
    script = load_script(path)

    first, second, third, fourth = (script.next_batch() for _ in range(4))

    assert first == second == BatchStep(fault=Fault(kind="drop"), unlisted=1, times=2)
    assert third == fourth == BatchStep(seconds=3)


def test_a_missing_script_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read the script"):
        load_script(tmp_path / "none.yaml")
