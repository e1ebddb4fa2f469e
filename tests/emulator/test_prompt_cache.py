"""The prompt cache reads, writes and charges what the documented rules say."""

from typing import Any

import pytest
from emulator_requests import api, ask, text, user
from tables import each

from pytest_regen.emulator import Emulator

TRAILING = 3


def marked(*words: tuple[str, str | None]) -> list[dict[str, Any]]:
    return [text(content, ttl) for content, ttl in words]


def usage(core: Emulator, **fields: Any) -> tuple[int, int, int]:
    found = ask(core, **fields)["usage"]
    return (
        found["cache_read_input_tokens"],
        found["cache_creation_input_tokens"],
        found["input_tokens"],
    )


LONG = "x" * 2_000
LONG_TOKENS = 820


def test_a_second_request_reads_what_the_first_wrote() -> None:
    """No other model does, and a prefix below the model's minimum is plain input."""
    core = api()
    system = marked((LONG, "5m"))

    first = usage(core, system=system)
    second = usage(core, system=system, messages=[user("Another question.")])
    other = usage(core, system=system, model="claude-opus-5-5")
    short = usage(core, system=marked(("x" * 1_000, "5m")))

    assert first == (0, LONG_TOKENS, 2 + TRAILING)
    assert second == (LONG_TOKENS, 0, 7 + TRAILING)
    assert other[0] == 0
    assert short == (0, 0, 410 + 2 + TRAILING)


@pytest.mark.parametrize(("ttl", "lifetime"), [("5m", 300), ("1h", 3600)])
def test_an_entry_lives_from_the_start_of_the_request(ttl: str, lifetime: int) -> None:
    """One second before the end of its lifetime it is read and refreshed, at the end it is gone."""
    core = api()
    system = marked((LONG, ttl))
    usage(core, system=system)

    core.clock.advance(lifetime - 1)
    assert usage(core, system=system)[0] == LONG_TOKENS
    core.clock.advance(lifetime - 1)
    assert usage(core, system=system)[0] == LONG_TOKENS
    core.clock.advance(lifetime)
    assert usage(core, system=system)[0] == 0


@pytest.mark.parametrize(("added", "read"), [(19, LONG_TOKENS), (20, 0)])
def test_a_breakpoint_looks_back_over_twenty_places(added: int, read: int) -> None:
    core = api()
    usage(core, messages=[user([text(LONG, "5m")])])

    more = [text(f"part {number}") for number in range(added - 1)]
    found = usage(core, messages=[user([text(LONG), *more, text("Well?", "5m")])])

    assert found[0] == read


def test_each_lifetime_is_charged_apart() -> None:
    found = ask(api(), system=marked((LONG, "1h"), (LONG + LONG, "5m")))["usage"]

    assert found["cache_creation"] == {
        "ephemeral_1h_input_tokens": LONG_TOKENS,
        "ephemeral_5m_input_tokens": 2 * LONG_TOKENS,
    }


def test_automatic_caching_marks_the_last_block() -> None:
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


@each(
    ("change", "kept"),
    [
        ({}, ("tools", "system", "messages")),
        ({"tool_choice": {"type": "auto"}}, ("tools", "system")),
        ({"thinking": {"type": "adaptive"}}, ("tools", "system")),
        ({"output_config": {"effort": "low"}}, ("tools", "system")),
        (FORMAT, ("tools",)),
        ({"messages": [user([text(LONG, "5m"), IMAGE])]}, ("tools", "system")),
        ({"tools": [TOOL, WEB_SEARCH]}, ("tools",)),
        ({"tools": [{**TOOL, "description": "changed"}]}, ()),
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


def read_when(fields: dict[str, Any], last: str) -> int:
    core = api()
    shorter = dict(fields)
    if last != "messages":
        shorter["messages"] = [user("Hi.")]
    if last == "tools":
        shorter["system"] = ...
    usage(core, **shorter)
    return usage(core, **shorter)[0]


def test_effort_keeps_the_cache_where_the_model_keeps_it() -> None:
    """Opus 5.5 and the Fables from 5.1 on read on when only the effort changes."""
    core = api()
    fields = {"model": "claude-opus-5-5", "messages": [user([text(LONG, "5m")])]}
    usage(core, **fields)

    assert usage(core, **fields, output_config={"effort": "low"})[0] == LONG_TOKENS
