"""Agents that reach their model over HTTP, and agents that are themselves reached over HTTP."""

import atexit
import json
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from functools import cache
from http.client import OK, HTTPConnection, HTTPException
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from pydantic.alias_generators import to_camel

from pytest_regen.emulator.messages import events_of
from pytest_regen.emulator.values import EmulatedReply, HttpResponse, dump
from pytest_regen.extras import needs
from pytest_regen.testing.agents import ScriptEndError, request_of
from pytest_regen.turns.values import Provider

_SECONDS: Final = 60
_JSON: Final = {"content-type": "application/json"}


@cache
def _served(port: int) -> tuple[str, list[Provider]]:
    """Return the address of a server on loopback, and the providers that answer there.

    One for each port, because a second server cannot listen where the first does.
    """
    with needs("anthropic", "agents that reach their model over HTTP"):
        from pytest_regen.emulator.server import LoopbackServer
    providers: list[Provider] = []

    def answer(_: str, url: SplitResult, __: Mapping[str, str], body: bytes) -> HttpResponse:
        number = url.path.split("/")[1]
        # Without a number: whoever has a port for itself has one agent at a time.
        provider = providers[int(number) if number.isdigit() else -1]
        try:
            return _answer(json.loads(body), provider, is_chat=url.path.endswith("/completions"))
        except (ScriptEndError, Exception) as error:  # noqa: BLE001 - the agent is told
            problem = {"type": "invalid_request_error", "message": repr(error)}
            return _response({"type": "error", "error": problem}, 400)

    server = LoopbackServer(answer, port=port)
    return f"http://127.0.0.1:{server.server_address[1]}", providers


def _answer(body: Mapping[str, Any], provider: Provider, *, is_chat: bool) -> HttpResponse:
    """Return a response of the Messages API, or one of chat completions."""
    messages = [{"role": "system", "content": body.get("system")}, *body["messages"]]
    spoken = [{**part, "content": _text(part.get("content"))} for part in messages]
    text = provider.send(request_of(spoken)).text
    # A reply that is no JSON is said as text, because a call without arguments is none.
    tool = _forced_tool(body) if text.startswith("{") else ""
    reply = (_chat if is_chat else _message)(body, text, tool)
    if not body.get("stream"):
        return _response(reply)
    if is_chat:
        chunk = dump({**reply, "object": "chat.completion.chunk"})
        events = b"data: " + chunk + b"\n\ndata: [DONE]\n\n"
    else:
        events = b"".join(event.data for event in events_of(reply, EmulatedReply()))
    return HttpResponse(200, {"content-type": "text/event-stream"}, events)


def _response(value: object, status: int = 200) -> HttpResponse:
    return HttpResponse(status, _JSON, dump(value))


def _text(content: Any) -> str:
    """Return what a message says; blocks that are no text as JSON."""
    if isinstance(content, list):
        return "\n".join(
            block["text"] if "text" in block else json.dumps(block) for block in content
        )
    return content or ""


def _forced_tool(body: Mapping[str, Any]) -> str:
    """Return the name of the tool that the reply has to call; structured output is made so."""
    choice, tools = body.get("tool_choice"), body.get("tools") or [{}]
    kind = choice if isinstance(choice, str) else (choice or {}).get("type")
    if kind not in ("any", "tool", "required", "function"):
        return ""
    return str(tools[0].get("name") or tools[0]["function"]["name"])


def _message(body: Mapping[str, Any], text: str, tool: str) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "text", "text": text}
    if tool:
        block = {"type": "tool_use", "id": "toolu_1", "name": tool, "input": json.loads(text)}
    return {
        "id": "msg_scripted",
        "type": "message",
        "role": "assistant",
        "model": body.get("model", ""),
        "content": [block],
        "stop_reason": "tool_use" if tool else "end_turn",
        "stop_sequence": None,
        "stop_details": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def _chat(body: Mapping[str, Any], text: str, tool: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if tool:
        function = {"name": tool, "arguments": text}
        call = {"index": 0, "id": "call_1", "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
    finish = "tool_calls" if tool else "stop"
    return {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": 0,
        "model": body.get("model", ""),
        # Both, because a client reads one of them: of a stream the delta.
        "choices": [{"index": 0, "message": message, "delta": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


def base_url(provider: Provider, *, port: int = 0) -> str:
    """Return an address of loopback at which ``provider`` answers, for agents with clients.

    It speaks the Messages API, and chat completions below ``/v1``; plain, streamed, and with forced
    tools. Any key will do.

    Args:
        provider: who answers.
        port: of the address; by default a free one.
    """
    address, providers = _served(port)
    providers.append(provider)
    return f"{address}/{len(providers) - 1}"


class HttpAgent:
    """An agent that is reached over HTTP; called with a provider, a function of the request."""

    def __init__(self, url: str, command: Sequence[str], port: int) -> None:
        self._url, self._command = urlsplit(url), command
        self._address = base_url(self, port=port)
        self._provider: Provider
        self._process: subprocess.Popen[bytes] | None = None

    def send(self, request: Any) -> Any:
        """Answer the agent as the provider of the turn does."""
        return self._provider.send(request)

    def __call__(self, provider: Provider) -> Any:
        """Return a function of the request that lets the agent speak to this provider."""

        def turn(request: Any) -> Any:
            self._provider = provider
            members = request.model_dump(mode="json", by_alias=True, exclude_none=True)
            body = json.dumps({to_camel(name): value for name, value in members.items()})
            if self._command and self._process is None:
                self._start()
            # A new one for each turn, because two turns may be taken at once.
            with closing(self._connection()) as connection:
                headers = _JSON | {"connection": "close"}
                connection.request("POST", self._url.path or "/", body, headers)
                response = connection.getresponse()
                text = response.read().decode("utf-8", "replace")
            if response.status != OK:
                raise HTTPException(f"{response.status} {text[:200]}")
            try:
                return json.loads(text)
            except ValueError:
                return text

        return turn

    def _connection(self) -> HTTPConnection:
        return HTTPConnection(self._url.hostname or "", self._url.port, timeout=_SECONDS)

    def _start(self) -> None:
        """Start the agent, and wait until it listens."""
        model = {"ANTHROPIC_BASE_URL": self._address, "OPENAI_BASE_URL": f"{self._address}/v1"}
        keys = {"ANTHROPIC_API_KEY": "none-needed", "OPENAI_API_KEY": "none-needed"}
        env = {**os.environ, **model, **keys, "PORT": str(self._url.port)}
        self._process = subprocess.Popen(self._command, env=env, stdout=subprocess.DEVNULL)
        # Because nobody else stops it: a check has no end that the agent is told of. What is
        # registered last is called first.
        atexit.register(self._process.wait)
        atexit.register(self._process.kill)
        end = time.monotonic() + _SECONDS
        while self._process.poll() is None and time.monotonic() < end:
            with suppress(ConnectionRefusedError), closing(self._connection()) as connection:
                connection.connect()
                break
            time.sleep(0.05)


def http(url: str, *, command: Sequence[str] = (), model_port: int = 0) -> HttpAgent:
    """Return an agent that is reached over HTTP, in whatever language it is written.

    Each turn is a POST of the request as JSON, with the names of requirement 3; what comes back
    with status 200 is the result, any other status an error. The agent speaks to the scripted model
    on loopback: Messages API or chat completions.

    Args:
        url: where the agent takes its turns.
        command: starts the agent, with the addresses of the model in ``ANTHROPIC_BASE_URL`` and
            ``OPENAI_BASE_URL``, and the port of ``url`` in ``PORT``. It is stopped in the end.
        model_port: of the scripted model, where you start the agent yourself: with
            ``ANTHROPIC_BASE_URL=http://127.0.0.1:PORT``, or ``OPENAI_BASE_URL`` with ``/v1``.
    """
    return HttpAgent(url, command, model_port)
