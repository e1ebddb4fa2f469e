"""A child that is watched from outside: what it starts is counted, whenever it ends."""

import subprocess
import sys

import pytest

from pytest_regen.sandbox import Job, Limits, Module, ask
from pytest_regen.sandbox.processes import count_threads

HANDLER = "def answer(module, question):\n    return module.f(question)\n"


@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes of Linux")
def test_a_process_may_end_while_it_is_counted() -> None:
    """In 500 tries, with children that come and go: what is gone counts as nothing."""
    for _ in range(500):
        with subprocess.Popen(["sh", "-c", "true & true & true & wait"]) as process:
            while process.poll() is None:
                count_threads(process.pid)
            assert count_threads(process.pid) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="counts what Linux tells")
@pytest.mark.usefixtures("level")
def test_threads_count_for_everybody() -> None:
    """Two hundred of them are refused by the kernel, or end who started them: root as well."""
    source = (
        "import threading, time\n"
        "def f(x):\n"
        "    for _ in range(200):\n"
        "        threading.Thread(target=time.sleep, args=[9], daemon=True).start()\n"
        "    time.sleep(2)\n"
        "    return x\n"
    )

    [result] = ask([Job(Module("candidate", source), (1,))], handler=HANDLER, limits=Limits())

    [answer] = result.answers
    if answer is None:
        assert (result.stopped, result.why) == ("processes", "it started too many processes")
    else:
        assert answer.raised
        assert "can't start new thread" in answer.raised.message
