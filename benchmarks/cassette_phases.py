"""A plugin of pytest that writes what each test took, set-up and tear-down included."""

import json
import os
import time
from collections.abc import Generator
from pathlib import Path

import pytest

_taken: list[float] = []


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """Take the CPU time of a test."""
    start = time.process_time()
    try:
        return (yield)
    finally:
        _taken.append(time.process_time() - start)


def pytest_sessionfinish() -> None:
    """Write the times."""
    Path(os.environ["REGEN_BENCH_PHASES"]).write_text(json.dumps(_taken), "utf-8")
