"""Turns by the Message Batches API: the real SDK over real HTTP, against the emulator."""

from pathlib import Path

from batch_work import ask, emulator, provider, said, submitted
from turn_values import turn


def test_what_is_asked_at_once_goes_into_one_batch(tmp_path: Path) -> None:
    """Each request gets its own reply, whatever the order of the results."""
    with emulator() as emulated, provider(emulated, tmp_path) as asked:
        replies = said(ask(asked, *(turn(f"{n}") for n in range(20))))

    assert replies == [f"You said: {n}" for n in range(20)]
    assert [len(batch) for batch in submitted(emulated)] == [20]
