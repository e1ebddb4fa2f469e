"""A clarification as a transcript: the input, the prompts and the results of its turns.

A transcript stands above the cassette. The cassette answers; the transcript says what each turn
meant, and shows, section by section, where a prompt is no longer the one that was recorded.
"""

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import yaml
from pydantic import BaseModel, ConfigDict

from pytest_regen.canonical import text_hash
from pytest_regen.cassettes.scrubbing import scrub_value
from pytest_regen.context import Ask, ClarificationRequest, parse_request
from pytest_regen.credentials.search import scrub_text
from pytest_regen.errors import RegenError, UsageError
from pytest_regen.testing.agents import AgentFactory, plain_result, resolve
from pytest_regen.text import plural
from pytest_regen.turns import Provider, Reply, ScriptedProvider, TurnRequest
from pytest_regen.turns.exchange import TurnExchange

# A failure shows the code of the test that called, none of the lines in between.
__tracebackhide__ = True

RECORD_COMMAND: Final = "pytest --regen-record rewrite"


class TranscriptError(RegenError):
    """A flow is not the one that its transcript tells."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class TranscriptCall(_Part):
    """One call of the model within a turn."""

    system_sha256: str
    prompt: str
    """The messages, joined."""
    reply: str


class TranscriptTurn(_Part):
    """One turn."""

    input: dict[str, Any]
    """The request: ``message``, and on a second turn ``conversationContext``."""
    calls: list[TranscriptCall]
    result: Any
    """What the agent returned, as JSON."""


class Transcript(_Part):
    """The turns of one flow, in the order in which they were taken."""

    kind: Literal["clarification-flow"] = "clarification-flow"
    schema_version: Literal[1] = 1
    source: str = ""
    """Who answered when it was recorded: ``emulator``, or a model's name."""
    turns: list[TranscriptTurn] = []

    def save(self, path: Path) -> None:
        """Write the transcript as YAML; texts of several lines as such."""
        path.parent.mkdir(parents=True, exist_ok=True)
        # In the order of the fields, because people review what a flow said turn by turn.
        form: dict[str, Any] = {"sort_keys": False, "allow_unicode": True, "width": 100}
        path.write_text(yaml.dump(self.model_dump(mode="json"), Dumper=_Dumper, **form), "utf-8")


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def read_transcript(path: Path, record_command: str = RECORD_COMMAND) -> Transcript:
    """Return the transcript at ``path``.

    Args:
        path: of the file.
        record_command: what an error says to run.

    Raises:
        TranscriptError: it is missing, or none.
    """
    try:
        return Transcript.model_validate(yaml.safe_load(path.read_text("utf-8")))
    except (OSError, ValueError, yaml.YAMLError) as error:
        what = f"there is no transcript of a flow at {path}"
        raise TranscriptError(what, why=str(error), hint=record_command) from None


@dataclass
class ClarificationFlow:
    """A flow that is taken turn by turn, each with a fresh agent and a context that was JSON."""

    make: AgentFactory
    """Makes the agent."""
    provider: Provider
    """Who answers."""
    recorded: Transcript | None = None
    """What to compare with; ``None`` records anew."""
    record_command: str = RECORD_COMMAND
    """What an error says to run."""
    transcript: Transcript = field(default_factory=Transcript, init=False)
    """What happened so far."""
    _message: str = field(default="", init=False)
    _ask: Ask | None = field(default=None, init=False)

    def start(self, description: str) -> Any:
        """Take the first turn.

        Raises:
            TranscriptError: the prompt is not the one that was recorded.
        """
        self._message = description
        result = self.take(parse_request({"message": description}))
        plain = plain_result(result)
        # As JSON, because an agent may return a type of its own.
        if isinstance(plain, Mapping) and plain.get("needs_clarification"):
            self._ask = Ask.model_validate(plain)
        return result

    def answer(self, answers: Mapping[str, object]) -> Any:
        """Take a second turn. Called again, it takes another second turn after the same first.

        Args:
            answers: by question id, as text or as typed answers; blank ones count as skipped.

        Raises:
            InvalidContextError: they do not fit the questions.
            UsageError: the first turn asked nothing, or was not taken.
            TranscriptError: the prompt is not the one that was recorded.
        """
        if self._ask is None:
            hint = "call flow.start(…) first, and look at what it returns"
            raise UsageError("no question was asked", hint=hint)
        ask = self._ask.model_dump(mode="json", by_alias=True)
        context = {
            "originalDescription": self._message,
            "questionsAsked": ask["clarification_questions"],
            "inferredContext": ask["inferred_context"],
            "answers": {key: plain_result(value) for key, value in answers.items()},
        }
        request = {"message": self._message, "conversationContext": context}
        return self.take(parse_request(request))

    def skip(self) -> Any:
        """Take a second turn in which every question was skipped; raises as ``answer`` does."""
        return self.answer({})

    def finish(self) -> None:
        """Check that every recorded turn was taken.

        Raises:
            TranscriptError: one was not.
        """
        taken = len(self.transcript.turns)
        left = len(self.recorded.turns) - taken if self.recorded else 0
        if left > 0:
            raise self._drift(f"{plural(left, 'recorded turn')} not taken", f"{taken} were")

    def take(self, request: ClarificationRequest) -> Any:
        """Take the next turn, whichever it is; raises as ``start`` does."""
        wire = request.model_dump(mode="json", by_alias=True, exclude_none=True)
        number = len(self.transcript.turns) + 1
        recorded = self.recorded.turns if self.recorded else []
        expected = recorded[number - 1] if number <= len(recorded) else None
        if self.recorded and expected is None:
            why = f"the transcript has {len(recorded)}"
            raise self._drift(f"turn {number} was not recorded", why)
        calls: list[TranscriptCall] = []

        def compare(request: TurnRequest) -> None:
            if expected is None:
                return
            if len(calls) >= len(expected.calls):
                what = f"turn {number} calls the model once more than was recorded"
                raise self._drift(what, f"{len(calls)} calls were")
            recorded, call = expected.calls[len(calls)], _call(request)
            if recorded.prompt != call.prompt:
                section = _section(recorded.prompt, call.prompt)
                what = f"turn {number} tells the model something else{section}"
                raise self._drift(what, _diff(recorded.prompt, call.prompt))
            if recorded.system_sha256 != call.system_sha256:
                raise self._drift(f"turn {number} has another system prompt", "")

        def keep(request: TurnRequest, reply: Reply) -> None:
            calls.append(_call(request, reply.text))

        agent = self.make(TurnExchange(self.provider, before=compare, after=keep))
        turn = agent.turn if hasattr(agent, "turn") else agent
        # Made of JSON, because the caller holds the context between two turns.
        result = resolve(turn(parse_request(wire)))
        # Scrubbed, because a transcript is kept beside the cassette.
        plain = scrub_value(plain_result(result))
        if expected is not None and plain != expected.result:
            why = _diff(_json(expected.result), _json(plain))
            raise self._drift(f"turn {number} returns something else", why)
        turn_taken = TranscriptTurn(input=scrub_value(wire), calls=calls, result=plain)
        self.transcript.turns.append(turn_taken)
        return result

    def _drift(self, what: str, why: str) -> TranscriptError:
        return TranscriptError(what, why=why, hint=self.record_command)


def _json(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, sort_keys=True)


def _diff(before: str, now: str) -> str:
    lines = before.splitlines(), now.splitlines()
    return "\n".join(difflib.unified_diff(*lines, "recorded", "now", lineterm="", n=1))


def _section(before: str, now: str) -> str:
    """Return under which heading two prompts begin to differ; empty under none."""
    lines = before.splitlines()
    pairs = enumerate(zip(lines, now.splitlines(), strict=False))
    same = next((at for at, (was, is_) in pairs if was != is_), len(lines))
    # With the next line, because the heading itself may be what differs.
    above = reversed(lines[: same + 1])
    heading = next((line for line in above if line.startswith("#")), "")
    return f", in {heading.lstrip('# ')!r}" if heading else ""


def _call(request: TurnRequest, reply: str = "") -> TranscriptCall:
    prompt = request.messages[0].content
    if len(request.messages) > 1:
        prompt = "\n\n".join(f"[{part.role}]\n{part.content}" for part in request.messages)
    return TranscriptCall(
        system_sha256=text_hash(request.system), prompt=scrub_text(prompt), reply=scrub_text(reply)
    )


def verify_transcript(path: Path | str, make: AgentFactory) -> Transcript:
    """Take every turn of a transcript again, its own replies as the model's, and compare.

    Nothing is sent anywhere: this finds, at no cost, every change of a prompt.

    Raises:
        TranscriptError: the agent tells the model something else, or returns something else.
    """
    recorded = read_transcript(Path(path))
    replies = [call.reply for turn in recorded.turns for call in turn.calls]
    flow = ClarificationFlow(make, ScriptedProvider(replies), recorded=recorded)
    for turn in recorded.turns:
        flow.take(parse_request(turn.input))
    return recorded
