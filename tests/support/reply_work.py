"""What children do with a journal of replies before they are killed (see killing.py)."""

from pathlib import Path

from turn_values import turn

from pytest_regen.turns.replies import ReplyJournal
from pytest_regen.turns.values import Reply, Usage

ANSWERER = "https://api.example.org"
PAGES = 6


def reply_to(page: int) -> Reply:
    """Return what the model says to ``turn(str(page))``."""
    blocks = ({"type": "x", "y": [page]},)
    words, id_ = f"page {page} \ud800 ü", f"msg_{page}"
    return Reply(words, "end_turn", Usage(3, 4), "model-1", id_, blocks=blocks)


def add_and_store(root: Path) -> None:
    """Get six replies; store the first two; the last one is on its way when the process ends."""
    journal = ReplyJournal.open(root)
    requests = [turn(str(page)) for page in range(PAGES)]
    for page, request in enumerate(requests):
        journal.add(request, ANSWERER, reply_to(page))
        if page == 2:
            journal.stored(requests[:2])


def take_one_by_one(root: Path, number: int) -> None:
    """Take what there is, beside other processes, and write down which replies it was."""
    with ReplyJournal.open(root) as journal:
        found = [journal.find(turn(str(page)), ANSWERER) for page in range(PAGES)]
        taken = [str(page) for page, reply in enumerate(found) if reply == reply_to(page)]
        (root / f"taken-{number}").write_text(" ".join(taken), "utf-8")
        journal.stored(turn(page) for page in taken)
