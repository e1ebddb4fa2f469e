"""The page as requests and answers: each view is whole, with or without JavaScript."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from pytest_regen.context.questions import MAX_ANSWER, MAX_LABEL
from pytest_regen.context.requests import parse_context
from pytest_regen.context.values import MAX_DESCRIPTION, Ask, ConversationContext
from pytest_regen.errors import InvalidContextError
from pytest_regen.server.flow import CLIENT_GONE, Answered, ClientGoneError, Flow, unless_gone
from pytest_regen.server.gazetteer import Gazetteer
from pytest_regen.server.page.fields import (
    KEPT,
    Filled,
    Kept,
    answers_of,
    filled_again,
    filled_in,
    kept_of,
    read_kept,
    too_long,
    unanswered,
)
from pytest_regen.server.page.views import Held, questions_page, result_page, start_page
from pytest_regen.server.problems import Problem, log_failure
from pytest_regen.server.requests import (
    FORM,
    read_body,
    read_form,
    read_json,
    request_id_of,
    require_media_type,
    unexpected,
)

__all__ = ["Page"]

Form = Mapping[str, Sequence[str]]
_START_AGAIN = frozenset(
    {
        "CONTEXT_TAMPERED",
        "CONTEXT_UNSEALED",
        "CONTEXT_MOVED",
        "CONTEXT_EXPIRED",
        "CONTEXT_FOREIGN_KEY",
        "CONTEXT_SPENT",
        "INVALID_CONTEXT",
    }
)
_WORDS = {
    "CONTEXT_EXPIRED": "These questions are too old to be answered.",
    "MESSAGE_REQUIRED": "Say what should change: nothing is written here yet.",
    "BODY_TOO_LARGE": "That is far more text than fits here: "
    f"at most {MAX_DESCRIPTION:,} characters.",
    "BODY_TIMEOUT": "What you wrote did not arrive in time. Try again.",
}
"""What a person is told, where a program is told something else."""
_UNPROCESSABLE = HTTPStatus.UNPROCESSABLE_ENTITY


class Page:
    """Answers people.

    Args:
        flow: takes the turns.
        client_of: says who asks.
        gazetteer: the places that can be found.
    """

    def __init__(
        self, flow: Flow, *, client_of: Callable[[Request], str], gazetteer: Gazetteer
    ) -> None:
        self._flow = flow
        self._client_of = client_of
        self._gazetteer = gazetteer

    async def start(self, request: Request) -> Response:  # noqa: ARG002 - the signature of a route
        """Show the first view."""
        return _page(start_page())

    async def back(self, request: Request) -> Response:  # noqa: ARG002 - as above
        """Send whoever opens an address that only takes forms to the first view."""
        return RedirectResponse("/", HTTPStatus.SEE_OTHER.value)

    async def again(self, request: Request) -> Response:
        """Show the first view with what was written."""
        try:
            form = await self._form(request)
        except Problem as problem:
            return _started_again("", problem)
        return _page(start_page(_one(form, "message")))

    async def describe(self, request: Request) -> Response:
        """Take the first turn."""
        message = ""
        kept: tuple[Kept, ...] = ()
        try:
            form = await self._form(request)
            message, kept = _one(form, "message"), read_kept(_one(form, KEPT))
            _check_length(message)
            return await self._turn(request, {"message": message}, kept)
        except ClientGoneError:
            return Response(status_code=CLIENT_GONE)
        except Exception as error:  # noqa: BLE001 - whatever it is, what was written stays
            return _started_again(message, _problem(request, error), kept)

    async def answer(self, request: Request) -> Response:
        """Take the second turn, or look for a place without JavaScript."""
        try:
            form = await self._form(request)
            held = _held(form)
        except Problem as unreadable:
            return _started_again("", unreadable)
        filled = filled_in(form, held.context.questions_asked)
        action = _one(form, "action")
        if action.startswith("find."):
            return _page(questions_page(held, self._found(action, held, filled)))
        try:
            skipped = action == "skip"
            return await (
                self._answered(request, held, {})
                if skipped
                else self._checked(request, held, filled)
            )
        except ClientGoneError:
            return Response(status_code=CLIENT_GONE)
        except Exception as error:  # noqa: BLE001 - as above
            problem = _problem(request, error)
        if problem.code in _START_AGAIN:
            context = held.context
            kept = kept_of(context.questions_asked, filled)
            return _started_again(context.original_description, problem, kept)
        return _page(questions_page(held, filled, problem=problem.message), problem)

    async def _checked(self, request: Request, held: Held, filled: Sequence[Filled]) -> Response:
        questions = held.context.questions_asked
        answers = answers_of(questions, filled, self._gazetteer)
        marked = [
            replace(entry, problem=_problem_of(held.context, question.id, answers))
            if not unanswered(question, answers[question.id])
            else replace(entry, problem="This one is needed: answer it, or skip the questions.")
            for question, entry in zip(questions, filled, strict=True)
        ]
        wrong = [number for number, entry in enumerate(marked) if entry.problem]
        if wrong:
            marked[wrong[0]] = replace(marked[wrong[0]], takes_focus=True)
            return _page(questions_page(held, marked), status=_UNPROCESSABLE)
        return await self._answered(request, held, answers)

    async def _answered(
        self, request: Request, held: Held, answers: Mapping[str, object]
    ) -> Response:
        context = held.context.with_answers({k: v for k, v in answers.items() if v is not None})
        data = {
            "message": context.original_description,
            "conversationContext": context.model_dump(mode="json", by_alias=True),
            "interactionId": held.fields["interaction"],
            "seal": held.fields["seal"] or None,
        }
        return await self._turn(request, data)

    async def _turn(
        self, request: Request, data: Mapping[str, object], kept: Sequence[Kept] = ()
    ) -> Response:
        """Take a turn, unless the person stops waiting for it."""
        client, request_id = self._client_of(request), request_id_of(request)
        taken = await self._flow.take(data, client, request_id=request_id)
        return _page(self._shown(await unless_gone(request, self._flow.answer(taken)), kept))

    def _shown(self, answered: Answered, kept: Sequence[Kept]) -> str:
        result, request = answered.result, answered.taken.request
        if isinstance(result, Ask):
            filled, left = filled_again(kept, result.questions)
            return questions_page(
                _holding(answered), filled, left=[(one.question, one.said) for one in left]
            )
        context = request.conversation_context
        return result_page(
            result,
            description=context.original_description if context else request.message,
            context=context,
            sent=self._flow.prompt_shown(answered.taken),
        )

    def _found(self, action: str, held: Held, filled: Sequence[Filled]) -> list[Filled]:
        wanted = action.removeprefix("find.")
        return [
            replace(
                entry,
                selected=(),
                found=self._gazetteer.search(entry.text or "", level=question.location_level),
            )
            if wanted == f"q{number}"
            else entry
            for number, (question, entry) in enumerate(
                zip(held.context.questions_asked, filled, strict=True)
            )
        ]

    async def _form(self, request: Request) -> Form:
        require_media_type(request, FORM)
        settings = self._flow.settings
        body = await read_body(
            request, limit=settings.max_body_bytes, seconds=settings.body_seconds
        )
        return read_form(body)


def _holding(answered: Answered) -> Held:
    context = answered.context()
    wire = context.model_dump(mode="json", by_alias=True, exclude={"answers"})
    return Held(
        context,
        {
            "context": json.dumps(wire, ensure_ascii=False, separators=(",", ":")),
            "interaction": answered.taken.conversation,
            "seal": answered.seal or "",
        },
    )


def _held(form: Form) -> Held:
    fields = {name: _one(form, name) for name in ("context", "interaction", "seal")}
    try:
        context = parse_context(read_json(fields["context"].encode("utf-8")))
    except InvalidContextError:
        raise Problem(
            _UNPROCESSABLE, "INVALID_CONTEXT", "What this page held was changed. Start again."
        ) from None
    return Held(context.with_answers({}), fields)


def _problem_of(
    context: ConversationContext, question_id: str, answers: Mapping[str, Any]
) -> str | None:
    answer = answers[question_id]
    try:
        context.with_answers({} if answer is None else {question_id: answer})
    except ValidationError:
        limit = MAX_LABEL if answer["kind"] == "place" else MAX_ANSWER
        said = answer.get("text") or answer.get("label") or answer.get("other") or ""
        if len(said) > limit:
            return too_long(len(said), limit)
        return "This is not one of the answers offered: choose one of those shown."
    return None


def _check_length(message: str) -> None:
    if len(message) > MAX_DESCRIPTION:
        raise Problem(
            _UNPROCESSABLE,
            "INVALID_REQUEST",
            too_long(len(message), MAX_DESCRIPTION),
            where="message",
        )


def _problem(request: Request, error: Exception) -> Problem:
    """Return what a person is told of an error; nobody foresaw those that are no problem."""
    if isinstance(error, Problem):
        return error
    log_failure(request_id_of(request), error)
    return unexpected()


def _page(page: str, problem: Problem | None = None, *, status: int = 200) -> Response:
    """Return a view. A browser may keep it for itself, so that Back shows what was typed."""
    headers = {"cache-control": "private, no-cache", **(problem.headers if problem else {})}
    return HTMLResponse(page, problem.status.value if problem else status, headers=headers)


def _started_again(message: str, problem: Problem, kept: Sequence[Kept] = ()) -> Response:
    words = _WORDS.get(problem.code, problem.message)
    if kept and problem.code in _START_AGAIN:
        words += " Send the description once more; your answers are kept."
    shown = start_page(
        message,
        problem=words,
        invalid=problem.where in {"message", "description"},
        kept=kept,
    )
    return _page(shown, problem)


def _one(form: Form, name: str) -> str:
    values = form.get(name, ())
    return values[0] if values else ""
