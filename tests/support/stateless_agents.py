"""Other people's stateless agents, in three styles, and what can be wrong with one.

A style is how an agent is called and how it words its prompts; a fault is one deviation. Each
combination is an agent, made by ``make_<style>_<fault>``, which a fresh process can import.
"""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Any
from xml.sax.saxutils import quoteattr

from pytest_regen.context import ClarificationRequest
from pytest_regen.testing import completion
from pytest_regen.turns.values import Message, Provider, TurnRequest

Said = list[dict[str, str]]
Quote = Callable[[str], str]

SYSTEM = "You write one subject line for a campaign, as JSON."

# What an agent knows of a second turn, in words of its own.


def view_of(request: ClarificationRequest) -> dict[str, Any]:
    """Return description, questions with their answers, and inferences, as plain values."""
    context = request.conversation_context
    if context is None:
        return {"issue": request.message, "asked": [], "guessed": {}}
    wire = context.model_dump(mode="json")
    asked = [
        {**question, "answer": wire["answers"].get(question["id"])}
        for question in wire["questions_asked"]
    ]
    return {
        "issue": wire["original_description"],
        "asked": asked,
        "guessed": wire["inferred_context"],
    }


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the leaves of a plain value, each with the names on the way to it."""
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield from leaves(one, f"{name} {key}".strip())
    elif isinstance(value, list):
        for number, one in enumerate(value, 1):
            yield from leaves(one, f"{name} {number}")
    else:
        yield name, value


# Styles: a view becomes messages.


def prose(view: Mapping[str, Any], quote: Quote) -> Said:
    """One paragraph, as an f-string makes it."""
    asked = " ".join(
        f"I asked {words({k: v for k, v in one.items() if k != 'answer'}, quote)} and they "
        + (f"replied with {words(one['answer'], quote)}." if one["answer"] else "said nothing.")
        for one in view["asked"]
    )
    return [
        {
            "role": "user",
            "content": f"Somebody complains: {quote(view['issue'])}. {asked} "
            f"My guesses were {words(view['guessed'], quote)}. Write now.",
        }
    ]


def words(value: Any, quote: Quote) -> str:
    """Return the leaves of a value as a list in a sentence."""
    return ", ".join(f"{name} = {told(one, quote)}" for name, one in leaves(value))


def told(value: Any, quote: Quote) -> str:
    """Return a leaf: texts quoted."""
    return quote(value) if isinstance(value, str) else json.dumps(value)


def xml(view: Mapping[str, Any], quote: Quote) -> Said:
    """Elements on one line, texts escaped; ids are attributes."""
    parts = [f"<issue>{quote(view['issue'])}</issue>"]
    for one in view["asked"]:
        parts.append(f"<question key={quote_attribute(one['id'], quote)}>")
        parts += elements({k: v for k, v in one.items() if k != "answer"}, quote)
        parts.append("<answer>")
        parts += elements(one["answer"] or {}, quote)
        parts.append("</answer></question>")
    parts += ["<guesses>", *elements(view["guessed"], quote), "</guesses>"]
    return [{"role": "user", "content": "".join(parts)}]


def quote_attribute(text: str, quote: Quote) -> str:
    """Return an attribute in its quotes."""
    return quoteattr(text, _CONTROLS) if quote is escape else f'"{quote(text)}"'


def elements(value: Any, quote: Quote) -> list[str]:
    """Return the leaves of a value as elements."""
    return [
        f"<{tag}>{told(one, quote).strip()}</{tag}>"
        for name, one in leaves(value)
        for tag in [name.replace(" ", "-").replace("_", "-")]
    ]


_CONTROLS = {chr(code): f"&#{code};" for code in (*range(1, 32), 0x85, 0x2028, 0x2029)}
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", **_CONTROLS}


def escape(text: str) -> str:
    """Return a text for an element; controls as references."""
    return text.translate({ord(one): entity for one, entity in _ENTITIES.items()})


def talk(view: Mapping[str, Any], quote: Quote) -> Said:
    """The conversation as it was, one message for each thing that was said."""
    said = [{"role": "user", "content": f"My issue: {quote(view['issue'])}"}]
    for one in view["asked"]:
        question = {k: v for k, v in one.items() if k != "answer"}
        answer = words(one["answer"], quote) if one["answer"] else "I would rather not say."
        said.append({"role": "assistant", "content": f"Tell me: {words(question, quote)}"})
        said.append({"role": "user", "content": answer})
    said.append({"role": "assistant", "content": f"I take it: {words(view['guessed'], quote)}"})
    return [*said, {"role": "user", "content": "Then write it."}]


STYLES: Mapping[str, tuple[Callable[[Mapping[str, Any], Quote], Said], Quote]] = {
    "prose": (prose, json.dumps),
    "xml": (xml, escape),
    "talk": (talk, json.dumps),
}


# The agent itself. Faults are looked up by name where they matter.


class Agent:
    """Renders, asks, and asks once more."""

    def __init__(self, complete: Callable[[Said], str], style: str, fault: str) -> None:
        self.complete, self.style, self.fault = complete, style, fault
        self.memory: dict[str, Any] = {}

    def take(self, request: ClarificationRequest) -> dict[str, Any]:
        """Take one turn."""
        key = REMEMBERED[self.fault](request) if self.fault in REMEMBERED else ""
        if key and key in self.memory:
            return dict(self.memory[key])
        messages = self.messages(request)
        found = self.asked(messages, request)
        if not found:
            again = {"role": "user", "content": "You have to write now, as JSON."}
            found = self.asked([*messages, again], request)
        if not found:
            raise ValueError("no subject line")
        if key:
            self.memory[key] = found
        return found

    def asked(self, messages: Said, request: ClarificationRequest) -> dict[str, Any]:
        """Return what the model writes, if it may be returned."""
        try:
            text = self.complete([{"role": "system", "content": SYSTEM}, *messages])
            found = json.loads(text)
        except ValueError:
            return {}
        asks = bool(found.get("clarification_questions"))
        may_ask = asks and not request.is_second_turn
        return dict(found) if found.get("subject_line") or may_ask else {}

    def messages(self, request: ClarificationRequest) -> Said:
        """Return what is sent at first."""
        if self.fault in BEFORE:
            request = BEFORE[self.fault](self, request)
        render, quote = STYLES[self.style]
        if self.fault in QUOTES:
            quote = QUOTES[self.fault](quote)
        view = view_of(request)
        if self.fault in VIEWS:
            VIEWS[self.fault](view)
        said = render(view, quote)
        return AFTER[self.fault](self, request, said) if self.fault in AFTER else said


# Faults.

View = dict[str, Any]


def _each_answer(view: View) -> Iterator[dict[str, Any]]:
    yield from (one["answer"] for one in view["asked"] if one["answer"])


def _main(answer: dict[str, Any]) -> str:
    return next(name for name in ("label", "text", "other") if name in answer)


def _inferred_wins(view: View, sure: Callable[[float], bool]) -> None:
    place = view["guessed"].get("detected_location")
    for answer in _each_answer(view):
        if place and sure(view["guessed"]["location_confidence"]):
            answer[_main(answer)] = place


def _reversed_answers(view: View) -> None:
    if len({tuple(one["answer"] or ()) for one in view["asked"]}) == 1:
        answers = [one["answer"] for one in view["asked"]]
        for one, answer in zip(view["asked"], reversed(answers), strict=True):
            one["answer"] = answer


def _exchanged(view: View) -> None:
    for answer in [*_each_answer(view)][:1]:
        name = _main(answer)
        place = view["guessed"]["detected_location"]
        answer[name], view["guessed"]["detected_location"] = place, answer[name]


def _posed(view: View) -> None:
    guess = view["guessed"].get("detected_location")
    for one in view["asked"]:
        if not one["answer"] and guess:
            one["answer"] = {
                "location_picker": {"kind": "place", "label": guess},
                "open_text": {"kind": "text", "text": guess},
                "multiple_choice": {"kind": "choice", "selected": [], "other": guess},
            }[one["type"]]


VIEWS: Mapping[str, Callable[[View], None]] = {
    "inferred wins": lambda view: _inferred_wins(view, lambda _: True),
    "inferred wins if sure": lambda view: _inferred_wins(view, lambda it: it >= 0.5),
    "cuts the description at 3,990": lambda view: view.update(issue=view["issue"][:3_990]),
    "answers under the wrong questions": _reversed_answers,
    "answer and inference exchanged": _exchanged,
    "poses the inference as an answer": _posed,
}


def _stored_wins(agent: Agent, request: ClarificationRequest) -> ClarificationRequest:
    if request.interaction_id is None or request.conversation_context is None:
        return request
    kept = agent.memory.setdefault(request.interaction_id, request.conversation_context)
    return request.with_context(kept)


BEFORE: Mapping[str, Callable[[Agent, ClarificationRequest], ClarificationRequest]] = {
    "stored context wins": _stored_wins,
}


def _appended(said: Said, text: str) -> Said:
    return [*said[:-1], {**said[-1], "content": f"{said[-1]['content']}\n{text}"}]


def _cut_prompt(_: Agent, __: ClarificationRequest, said: Said) -> Said:
    text = "\n".join(message["content"] for message in said)
    return [{"role": "user", "content": text[:4_000]}]


def _first_added(agent: Agent, request: ClarificationRequest, said: Said) -> Said:
    if request.interaction_id is None:
        return said
    if request.conversation_context is None:
        agent.memory[request.interaction_id] = request.message
        return said
    first = agent.memory.get(request.interaction_id)
    return said if first is None else _appended(said, f"At first they wrote {json.dumps(first)}")


def _added(value: Callable[[], object]) -> Any:
    return lambda _, __, said: _appended(said, f"Note {json.dumps(value())}.")


AFTER: Mapping[str, Callable[[Agent, ClarificationRequest, Said], Said]] = {
    "cuts the prompt at 4,000": _cut_prompt,
    "adds the stored first turn": _first_added,
    "prints the date": _added(lambda: str(date.today())),  # noqa: DTZ011 - as they do
    "prints the hour": _added(lambda: f"{datetime.now(UTC):%H}"),
}


def _flat(_: Quote) -> Quote:
    return lambda text: f'"{" ".join(text.split())}"'


QUOTES: Mapping[str, Callable[[Quote], Quote]] = {
    "pastes texts": lambda _: str,
    "pastes lines between quotes": _flat,
}

REMEMBERED: Mapping[str, Callable[[ClarificationRequest], str]] = {
    "remembers by description": lambda request: request.message,
    "remembers by answers": lambda request: (
        ""
        if request.conversation_context is None
        else json.dumps(request.conversation_context.model_dump(mode="json")["answers"])
    ),
}

FAULTS: Mapping[str, str] = {
    "inferred wins": "carries_full_context",
    "inferred wins if sure": "carries_full_context",
    "cuts the description at 3,990": "carries_full_context",
    "cuts the prompt at 4,000": "carries_full_context",
    "answers under the wrong questions": "answers_in_place",
    "answer and inference exchanged": "answers_in_place",
    "stored context wins": "stateless",
    "adds the stored first turn": "stateless",
    "remembers by description": "stateless",
    "remembers by answers": "stateless",
    "prints the date": "stateless",
    "prints the hour": "stateless",
    "poses the inference as an answer": "skip_works",
    "pastes texts": "structure_holds",
    "pastes lines between quotes": "structure_holds",
}
"""The check that each must fail, and no other."""


# How agents are called.


class _Class:
    """An object with ``turn``, which speaks through the provider itself."""

    def __init__(self, provider: Provider, style: str, fault: str) -> None:
        self.agent = Agent(self.complete, style, fault)
        self.provider = provider

    def complete(self, said: Said) -> str:
        """Send messages as a request."""
        spoken = tuple(
            Message("assistant" if one["role"] == "assistant" else "user", one["content"])
            for one in said[1:]
        )
        return self.provider.send(TurnRequest(said[0]["content"], spoken, "", 1_000)).text

    def turn(self, request: ClarificationRequest) -> dict[str, Any]:
        """Take one turn."""
        return self.agent.take(request)


class _Asynchronous:
    """Has a turn that is waited for."""

    def __init__(self, provider: Provider, style: str, fault: str) -> None:
        self.agent = Agent(completion(provider), style, fault)

    async def turn(self, request: ClarificationRequest) -> dict[str, Any]:
        """Take one turn."""
        await asyncio.sleep(0)
        return self.agent.take(request)


def _function(provider: Provider, style: str, fault: str) -> Any:
    """Return a plain function of the request."""
    return Agent(completion(provider), style, fault).take


CALLED: Mapping[str, Callable[[Provider, str, str], Any]] = {
    "prose": _function,
    "xml": _Asynchronous,
    "talk": _Class,
}


# Correct agents that are built in yet other ways.


_LIKE_THIS = {"role": "system", "content": "Write like this: <example>Fix our roads</example>"}
"""Tags around what is always the same are no place for anybody's words."""


def make_dumping(provider: Provider) -> Any:
    """Return a function that sends the context as pydantic dumps it."""
    complete = completion(provider)

    def turn(request: ClarificationRequest) -> Any:
        context = request.conversation_context
        said = request.message if context is None else context.model_dump_json(exclude_none=True)
        found = json.loads(complete([_LIKE_THIS, {"role": "user", "content": said}]))
        if found.get("subject_line") or not request.is_second_turn:
            return found
        raise ValueError("the model asks again")

    return turn


def factory(style: str, fault: str = "") -> Callable[[Provider], Any]:
    """Return what makes an agent; a fresh process finds it by its name."""
    name = f"make_{style}_{fault}".replace(" ", "_").replace(",", "")
    if name not in globals():

        def make(provider: Provider) -> Any:
            return CALLED[style](provider, style, fault)

        make.__qualname__ = make.__name__ = name
        globals()[name] = make
    return globals()[name]  # type: ignore[no-any-return]  # made above


for _style in STYLES:
    for _fault in ("", *FAULTS):
        factory(_style, _fault)
