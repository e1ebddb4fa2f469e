"""A session's history as plain JSON, and back."""

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_regen.errors import UsageError
from pytest_regen.turns.values import Message

__all__ = ["check_state", "messages_from_json", "messages_to_json"]

VERSION = 1


def messages_to_json(history: Sequence[Message]) -> list[dict[str, str]]:
    """Return messages as the API words them."""
    return [{"role": message.role, "content": message.content} for message in history]


def messages_from_json(data: object) -> tuple[Message, ...]:
    """Return the messages that ``messages_to_json`` wrote.

    Raises:
        UsageError: they do not alternate from user to assistant, or are no messages.
    """
    try:
        history = tuple(Message(one["role"], str(one["content"])) for one in list(data))  # type: ignore[call-overload]
    except (TypeError, KeyError) as error:
        raise _not_ours(f"its history holds no messages: {error!r}") from error
    roles = [message.role for message in history]
    if roles != ["user", "assistant"] * (len(roles) // 2):
        raise _not_ours(f"its history does not alternate: {', '.join(roles)}")
    return history


def check_state(data: Mapping[str, Any], kind: str) -> None:
    """Check that ``data`` is a session of that kind.

    Raises:
        UsageError: it is not.
    """
    if data.get("kind") != kind:
        raise _not_ours(f"its kind is {data.get('kind')!r}, not {kind!r}")
    if data.get("version") != VERSION:
        raise _not_ours(f"its version is {data.get('version')!r}, and {VERSION} is read here")
    missing = [key for key in ("system", "model", "history", "usage") if key not in data]
    if missing:
        raise _not_ours(f"it lacks {', '.join(missing)}")


def _not_ours(why: str) -> UsageError:
    return UsageError(
        "this is no session that can be restored",
        why=why,
        hint="pass what to_json() returned",
    )
