"""The prompt cache reads, writes and charges what the documented rules say."""

import importlib.util
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from emulator_requests import HEADERS, api, ask, body, dumped, said, text, user
from tables import each

from pytest_regen.emulator import Emulator
from pytest_regen.emulator.limits import Clock

REFERENCE = (
    Path(__file__).parents[3] / "shared/research/anthropic-files/prompt_cache_reference_model.py"
)
MINIMUM = {"claude-sonnet-5-5": 512, "claude-opus-4-8": 1024, "claude-opus-4-7": 2048}
TRAILING = 3

Reference = Any
Fields = Callable[[], dict[str, Any]]
ReferenceBlock = tuple[bytes, int, str | None]
Request = tuple[Fields, list[ReferenceBlock]]
Charged = tuple[tuple[int, int, int, int], Callable[[], None]]
Cost = Callable[[Fields, list[ReferenceBlock], str], Charged]


@pytest.fixture(scope="module")
def reference_model() -> Callable[[], Reference]:
    """The independent model of the cache, kept beside the checkout."""
    if not REFERENCE.is_file():
        pytest.skip("the reference model of the prompt cache is not beside this checkout")
    spec = importlib.util.spec_from_file_location("prompt_cache_reference", REFERENCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    factory: Callable[[], Reference] = module.Cache
    return factory


class Conversation:
    """A conversation that grows, and is edited, moved about and marked at random."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.model = dice.choice(list(MINIMUM))
        self.system = [self.words() for _ in range(dice.randrange(4))]
        self.turns = [[self.words() for _ in range(dice.choice((1, 1, 2, 12, 24)))]]
        self.now = 0.0

    def words(self) -> str:
        """Return a text of 1 to about 1,200 tokens, short ones more often."""
        return f"{self.dice.randrange(30)}" + "x" * self.dice.choice((0, 9, 90, 900, 2_900))

    def step(self) -> None:
        """Say more; now and then change what was said, or wait."""
        self.now += self.dice.choice((0, 1, 100, 299, 300, 301, 3_599, 3_601))
        for _ in range(self.dice.choice((2, 2, 2, 4))):
            self.turns.append([self.words() for _ in range(self.dice.choice((1, 1, 3, 25)))])
        place = self.dice.choice(self.turns)
        match self.dice.randrange(8):
            case 0:
                place[self.dice.randrange(len(place))] = self.words()
            case 1:
                place.insert(0, self.words())
            case 2:
                self.system.append(self.words())
            case 3:
                self.dice.shuffle(place)
        if len(self.turns) % 2 == 0:
            self.turns.append([self.words()])

    def request(self) -> Request:
        """Return the request as the API takes it, and as the reference model takes it."""
        flat = [("system", words) for words in self.system]
        for number, blocks in enumerate(self.turns):
            flat += [(("user", "assistant")[number % 2], words) for words in blocks]
        marks = self.marks(len(flat))
        explicit = dict(marks)
        automatic = self.automatic(len(flat), marks)
        blocks_of_reference = [
            (f"{role}:{words}".encode(), -(-len(words) * 41 // 100), marks.get(number))
            for number, (role, words) in enumerate(flat)
        ]
        return (lambda: self.fields(explicit, automatic)), blocks_of_reference

    def marks(self, length: int) -> dict[int, str]:
        """Return up to four breakpoints, those of an hour first."""
        count = self.dice.choice((0, 1, 1, 2, 3, 4))
        places = sorted(self.dice.sample(range(length), min(count, length)))
        hours = self.dice.randrange(len(places) + 1)
        return {place: "1h" if i < hours else "5m" for i, place in enumerate(places)}

    def automatic(self, length: int, marks: dict[int, str]) -> str | None:
        """Return the lifetime of automatic caching, and enter it among the marks."""
        last = length - 1
        if self.dice.randrange(3) or (len(marks) == 4 and last not in marks):
            return None
        ttl = marks.get(last) or (
            "5m" if "5m" in marks.values() else self.dice.choice(("5m", "1h"))
        )
        marks[last] = ttl
        return ttl

    def fields(self, marks: dict[int, str], automatic: str | None) -> dict[str, Any]:
        """Return the request with its breakpoints."""
        numbers = iter(range(10_000))
        system = [text(words, marks.get(next(numbers))) for words in self.system]
        messages = [
            {
                "role": ("user", "assistant")[turn % 2],
                "content": [text(words, marks.get(next(numbers))) for words in blocks],
            }
            for turn, blocks in enumerate(self.turns)
        ]
        fields = body(model=self.model, messages=messages, system=system or ...)
        if automatic:
            fields["cache_control"] = {"type": "ephemeral", "ttl": automatic}
        return fields


def check_conversation(
    seed: int, reference_model: Callable[[], Reference], cost: Callable[[Clock], Cost]
) -> tuple[int, int]:
    """Hold one conversation with both; return the tokens read and written."""
    dice = random.Random(seed)
    talk, theirs, clock = Conversation(dice), reference_model(), Clock(0.0)
    ours = cost(clock)
    late: list[Callable[[], None]] = []
    read = written = 0
    for _ in range(dice.choice((2, 3, 4))):
        fields, blocks = talk.request()
        clock.set(talk.now)
        use, commit = theirs.step(blocks, talk.now, MINIMUM[talk.model], talk.model)
        usage, on_start = ours(fields, blocks, talk.model)
        # Requests sent before the first response begins do not see what it writes.
        late += [commit, on_start]
        if dice.randrange(4):
            while late:
                late.pop(0)()
        assert usage == (use["read"], use["w1h"], use["w5m"], use["input"]), seed
        read, written = read + use["read"], written + use["w1h"] + use["w5m"]
        talk.step()
    return read, written


def by_request(clock: Clock) -> Cost:
    """Cost as the usage of a response reports it, from the request as the API takes it."""
    core = api(clock=clock)

    def cost(fields: Fields, _: list[ReferenceBlock], __: str) -> Charged:
        response = core.handle("POST", urlsplit("/v1/messages"), HEADERS, dumped(fields()))
        usage = said(response)["usage"]
        created = usage["cache_creation"]
        hour, minutes = created["ephemeral_1h_input_tokens"], created["ephemeral_5m_input_tokens"]
        assert usage["cache_creation_input_tokens"] == hour + minutes
        assert response.on_start
        plain = usage["input_tokens"] - TRAILING
        return (usage["cache_read_input_tokens"], hour, minutes, plain), response.on_start

    return cost


@pytest.mark.parametrize("count", [150, pytest.param(10_000, marks=pytest.mark.sweep)])
def test_requests_cost_what_the_reference_model_says(
    count: int, reference_model: Callable[[], Reference]
) -> None:
    """In random conversations every request costs what the reference says."""
    totals = [check_conversation(n, reference_model, by_request) for n in range(count)]
    assert sum(read > 0 for read, _ in totals) > count // 5
    assert sum(written > 0 for _, written in totals) > count // 2


def marked(*words: tuple[str, str | None]) -> list[dict[str, Any]]:
    """Return system blocks with their breakpoints."""
    return [text(content, ttl) for content, ttl in words]


def usage(core: Emulator, **fields: Any) -> tuple[int, int, int]:
    """Return what a request reads, writes and pays in full."""
    found = ask(core, **fields)["usage"]
    return (
        found["cache_read_input_tokens"],
        found["cache_creation_input_tokens"],
        found["input_tokens"],
    )


LONG = "x" * 2_000
LONG_TOKENS = 820


def test_a_second_request_reads_what_the_first_wrote() -> None:
    """The prefix up to the breakpoint is written once, then read."""
    core = api()
    system = marked((LONG, "5m"))

    first = usage(core, system=system)
    second = usage(core, system=system, messages=[user("Another question.")])

    assert first == (0, LONG_TOKENS, 2 + TRAILING)
    assert second == (LONG_TOKENS, 0, 7 + TRAILING)


def test_nothing_is_cached_below_the_minimum() -> None:
    """A prefix shorter than the model's minimum is plain input, and no error."""
    core = api()

    assert usage(core, system=marked(("x" * 1_000, "5m"))) == (0, 0, 410 + 2 + TRAILING)


@pytest.mark.parametrize(("ttl", "lifetime"), [("5m", 300), ("1h", 3600)])
def test_an_entry_lives_from_the_start_of_the_request(ttl: str, lifetime: int) -> None:
    """One second before the end of its lifetime it is read and refreshed, at the end it is gone."""
    clock = Clock(0.0)
    core = api(clock=clock)
    system = marked((LONG, ttl))
    usage(core, system=system)

    clock.advance(lifetime - 1)
    assert usage(core, system=system)[0] == LONG_TOKENS
    clock.advance(lifetime - 1)
    assert usage(core, system=system)[0] == LONG_TOKENS
    clock.advance(lifetime)
    assert usage(core, system=system)[0] == 0


def test_what_is_written_shows_only_when_the_response_begins() -> None:
    """Two requests sent at once both write."""
    core = api()
    fields = body(system=marked((LONG, "5m")))
    request = ("POST", urlsplit("/v1/messages"), HEADERS, dumped(fields))

    waiting = core.handle(*request)
    other = core.handle(*request)

    assert said(waiting)["usage"]["cache_creation_input_tokens"] == LONG_TOKENS
    assert said(other)["usage"]["cache_creation_input_tokens"] == LONG_TOKENS


def test_models_do_not_share_entries() -> None:
    """Another model writes for itself."""
    core = api()
    system = marked((LONG + LONG + LONG, "5m"))
    usage(core, system=system)

    assert usage(core, system=system, model="claude-opus-5-5")[0] == 0


def test_automatic_caching_marks_the_last_block() -> None:
    """A growing conversation reads all of the request before."""
    core = api()
    messages = [user(LONG)]
    automatic = {"cache_control": {"type": "ephemeral"}}
    _, written, _ = usage(core, messages=messages, **automatic)
    messages += [{"role": "assistant", "content": "Yes."}, user("And now?")]

    read, _, plain = usage(core, messages=messages, **automatic)

    assert read == written == LONG_TOKENS
    assert plain == TRAILING


SCHEMA = {"type": "object", "properties": {}, "additionalProperties": False}
FORMAT = {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}}
TOOL = {"name": "look", "description": LONG, "input_schema": {"type": "object"}}
WEB_SEARCH = {"type": "web_search_20250305", "name": "web_search"}
IMAGE = {"type": "image", "source": {"type": "url", "url": "https://pictures.example/a.png"}}
CITED = {
    "type": "document",
    "source": {"type": "text", "media_type": "text/plain", "data": "x"},
    "citations": {"enabled": True},
}


@each(
    ("change", "kept"),
    [
        ({}, ("tools", "system", "messages")),
        ({"tool_choice": {"type": "auto"}}, ("tools", "system")),
        ({"thinking": {"type": "adaptive"}}, ("tools", "system")),
        ({"output_config": {"effort": "low"}}, ("tools", "system")),
        (FORMAT, ("tools",)),
        ({"speed": "fast"}, ("tools",)),
        ({"model": "claude-opus-5-5", "output_config": {"effort": "low"}}, ()),
        ({"messages": [user([text(LONG, "5m"), IMAGE])]}, ("tools", "system")),
        ({"messages": [user([text(LONG, "5m"), CITED])]}, ("tools",)),
        ({"tools": [TOOL, WEB_SEARCH]}, ("tools",)),
        ({"tools": [{**TOOL, "description": "changed"}]}, ()),
        ({"tools": [{**TOOL, "name": "hear"}, TOOL]}, ()),
    ],
)
def test_a_change_costs_the_sections_the_api_says(
    change: dict[str, Any], kept: tuple[str, ...]
) -> None:
    """A parameter that is rendered into the prompt loses what stands behind it."""
    tool = {**TOOL, "cache_control": {"type": "ephemeral"}}
    fields = {
        "tools": [tool],
        "system": marked((LONG, "5m")),
        "messages": [user([text(LONG, "5m")])],
    }
    if "tools" in change:
        change = {"tools": [{**change["tools"][0], "cache_control": {"type": "ephemeral"}},
                            *change["tools"][1:]]}  # fmt: skip
    core = api("{}")
    usage(core, **fields)

    read, *_ = usage(core, **{**fields, **change})

    assert read == (read_when(fields, kept[-1]) if kept else 0)


def test_effort_keeps_the_cache_where_the_model_keeps_it() -> None:
    """Opus 5.5 and the Fables from 5.1 on read on when only the effort changes."""
    core = api()
    fields = {"model": "claude-opus-5-5", "messages": [user([text(LONG, "5m")])]}
    usage(core, **fields)

    assert usage(core, **fields, output_config={"effort": "low"})[0] == LONG_TOKENS


def read_when(fields: dict[str, Any], last: str) -> int:
    """Return the tokens of the prompt up to the end of one section."""
    core = api()
    shorter = dict(fields)
    if last != "messages":
        shorter["messages"] = [user("Hi.")]
    if last == "tools":
        shorter["system"] = ...
    usage(core, **shorter)
    return usage(core, **shorter)[0]
