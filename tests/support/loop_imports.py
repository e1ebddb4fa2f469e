"""Run as a program: prints, as JSON, the modules of ours that were first loaded in an event loop.

Each case is a process of its own, forked where the clients are loaded and nothing of ours is: what
one case loads must not be there for the next.
"""

import asyncio
import contextlib
import importlib
import json
import os
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from loop_work import ask_all
from small_site import small_site

_OURS = f"{os.sep}pytest_regen{os.sep}"


class _Watch:
    """Notes the modules that our code asks for inside an event loop."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def find_spec(
        self, name: str, _path: Any = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Note the module, and leave the search to others."""
        frame: FrameType | None = sys._getframe()
        while asyncio._get_running_loop() is not None and frame is not None:
            if _OURS in frame.f_code.co_filename:
                self.found.append(name)
                break
            frame = frame.f_back
        return None


def _importing_wave(body: Any) -> Any:
    importlib.import_module("wave")
    return body


_CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "recording": ("ivy", {"mode": "new_episodes"}),
    "replaying": ("ivy", {}),
    "missing": ("oak", {}),
    "drifting": ("oak", {"drift": "warn"}),
    "missing_in_vcr": ("oak", {}),
    "importing": ("ivy", {"normalize": _importing_wave}),
}
"""What is asked for, and options of the cassette."""


def _run(case: str, path: Path, ask: Any) -> None:
    from pytest_regen.cassettes import use_cassette

    word, options = _CASES[case]
    if case == "missing_in_vcr":
        _missing_in_vcr(path, ask)
    elif case == "missing":
        with contextlib.suppress(Exception), use_cassette(path, diff_folder=path.parent):
            ask(word)
    else:
        with use_cassette(path, diff_folder=path.parent, **options):
            ask(word)


def _missing_in_vcr(path: Path, ask: Any) -> None:
    from pytest_regen.cassettes.clients.vcr_run import VcrOptions, use_vcr_cassette

    path.with_name("v.yaml").write_bytes(path.read_bytes())
    config = {"match_on": ["method", "path", "body"]}
    options = VcrOptions(
        "v", path.parent, "none", config, (), lambda _: None, diff_folder=path.parent
    )
    with contextlib.suppress(BaseException), use_vcr_cassette(options):
        ask("oak")


def main(folder: Path) -> dict[str, list[str]]:
    """Return the modules by case."""
    with small_site() as site:
        ask_all("httpx2", site.address, ["warm"])
        return {case: _forked(case, folder / "c.yaml", site.address) for case in _CASES}


def _forked(case: str, path: Path, address: str) -> list[str]:
    told, tell = os.pipe()
    child = os.fork()
    if child:
        os.close(tell)
        with os.fdopen(told) as file:
            text = file.read()
        os.waitpid(child, 0)
        return list(json.loads(text or '["it failed"]'))
    try:
        watch = _Watch()
        sys.meta_path.insert(0, watch)
        _run(case, path, lambda word: ask_all("httpx2", address, [word]))
        os.write(tell, json.dumps(watch.found).encode())
    finally:
        os._exit(0)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(Path(sys.argv[1]))))
