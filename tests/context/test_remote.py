"""Agents that speak HTTP: to their model, by a client of their own, or to whoever calls them."""

import json
import shutil
import socket
from functools import cache
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from pytest_regen.testing import base_url, check_stateless_agent, failing_checks, http
from pytest_regen.turns import ScriptedProvider
from pytest_regen.turns.values import Provider

NODE = """
const ask = async prompt => {
  const reply = await fetch(process.env.ANTHROPIC_BASE_URL + "/v1/messages", {
    method: "POST",
    body: JSON.stringify({model: "m", messages: [{role: "user", content: prompt}]}),
  });
  return JSON.parse((await reply.json()).content[0].text);
};
require("http").createServer(async (request, response) => {
  let body = "";
  for await (const part of request) body += part;
  const {message, conversationContext: context} = JSON.parse(body);
  const prompt = JSON.stringify(FAULT ? {message, answers: context?.answers} : {message, context});
  for (let calls = 0; calls < 2; calls++) {
    try {
      const found = await ask(prompt);
      if (found.subject_line || !context) return response.end(JSON.stringify(found));
    } catch {}
  }
  response.writeHead(502).end();
}).listen(process.env.PORT, "127.0.0.1");
"""


@pytest.mark.parametrize("fault", ["false", "true"])
def test_an_agent_over_http(fault: str, tmp_path: Path) -> None:
    """In Node.js: a correct one passes, and what another loses is found."""
    if shutil.which("node") is None:
        pytest.skip("there is no Node.js on this machine")
    script = tmp_path / "agent.js"
    script.write_text(NODE.replace("FAULT", fault), "utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    agent = http(f"http://127.0.0.1:{port}/turn", command=["node", str(script)])

    failures = failing_checks(agent)

    assert list(failures) == (["carries_full_context"] if fault == "true" else [])


def test_nobody_at_the_address() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        agent = http(f"http://127.0.0.1:{free.getsockname()[1]}/turn")
        failures = failing_checks(agent, checks=["skip_works"])

    assert "the second turn raises ConnectionRefusedError" in str(failures["skip_works"])


@cache
def shared_client() -> Any:
    """Return the client whose connections all agents below use, closed by their test."""
    return pytest.importorskip("anthropic").Anthropic(api_key="none", max_retries=0)


def make_with_client(provider: Provider) -> Any:
    """Return an agent that speaks through a vendor's client, streamed."""
    client = shared_client().with_options(base_url=base_url(provider))

    def turn(request: Any) -> str:
        messages = [{"role": "user", "content": request.model_dump_json()}]
        for _ in range(2):
            with client.messages.stream(model="m", max_tokens=9, messages=messages) as stream:
                text = stream.get_final_text() or ""
            if "subject_line" in text:
                return str(text)
        raise ValueError("no subject line")

    return turn


def test_an_agent_with_a_client_of_its_own() -> None:
    checks = ["carries_full_context", "retry_keeps_context", "reasking_bounded"]

    with shared_client():
        check_stateless_agent(make_with_client, checks=checks)


@pytest.mark.parametrize("streamed", [False, True])
def test_chat_completions_call_the_tool_they_have_to(streamed: bool) -> None:  # noqa: FBT001 - a column
    """As frameworks ask for structured output; system prompt and blocks are told as text."""
    provider = ScriptedProvider(['{"subject_line": "x"}'])
    body = {
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "rent is up"}]},
        ],
        "tools": [{"type": "function", "function": {"name": "final"}}],
        "tool_choice": "required",
        "stream": streamed,
    }

    with urlopen(f"{base_url(provider)}/v1/chat/completions", json.dumps(body).encode()) as reply:
        text = reply.read().decode()

    (request,) = provider.requests
    assert (request.system, request.messages[0].content) == ("Be brief.", "rent is up")
    (choice,) = json.loads(text.removeprefix("data: ").partition("\n")[0])["choices"]
    call = choice["delta" if streamed else "message"]["tool_calls"][0]["function"]
    assert call == {"name": "final", "arguments": '{"subject_line": "x"}'}
    assert text.endswith("data: [DONE]\n\n") == streamed
