"""Make the example's translations and recordings anew.

    python examples/translations/record.py          against the emulator, no key needed
    python examples/translations/record.py --live   against the real API, with ANTHROPIC_API_KEY

The replies of the emulated form are the translations that stand in ``locales/``, which were written
by hand for this example. No language model wrote them, and the recordings say
``source: emulator``.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

from demo import COPY, HERE, break_one_string, run_pytest

from pytest_regen import Emulator, regions

LANGUAGES = {"de": "German", "fr": "French"}


def main() -> None:
    """Translate the catalogue, then record the healing that ``demo.py`` replays."""
    answer = answers()
    for folder in (".regen", "cassettes"):
        shutil.rmtree(HERE / folder, ignore_errors=True)
    with nullcontext() if "--live" in sys.argv else emulator(answer):
        for language in LANGUAGES:
            translate(language)
        record_the_demo()


def answers() -> Callable[[dict[str, object]], str]:
    """Return what answers a request with the translation that stands in the catalogue."""
    translations = {
        (name, unit): json.dumps(span.text, ensure_ascii=False)
        for language, name in LANGUAGES.items()
        for unit, span in regions.JsonStrings().find(catalogue(language).read_text("utf-8")).items()
    }

    def answer(body: dict[str, object]) -> str:
        text = json.dumps(body["messages"], ensure_ascii=False)
        return next(
            translation
            for (name, unit), translation in translations.items()
            if f" into {name} (" in text and f'Key: \\"{unit}\\"' in text
        )

    return answer


def emulator(answer: Callable[[dict[str, object]], str]) -> Emulator:
    """Return an emulator that answers so, and point the SDK at it."""
    running = Emulator(answer).start()
    os.environ |= {"ANTHROPIC_BASE_URL": running.base_url, "ANTHROPIC_API_KEY": "none-needed"}
    return running


def translate(language: str) -> None:
    """Translate the catalogue into one language, recorded."""
    catalogue(language).unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest_regen", "generate", f"locales/{language}.json"]
    recording = ["--cassette", f"cassettes/generate_{language}.yaml", "--record", "rewrite"]
    subprocess.run([*command, *recording], cwd=HERE, check=True)


def catalogue(language: str) -> Path:
    """Return the file of a language."""
    return HERE / "locales" / f"{language}.json"


def record_the_demo() -> None:
    """Break a copy as ``demo.py`` does, heal it, and keep the recording."""
    shutil.rmtree(COPY, ignore_errors=True)
    shutil.copytree(HERE, COPY, ignore=shutil.ignore_patterns("__pycache__", "locks", "history"))
    break_one_string(COPY)
    run_pytest(COPY, "--regen", "--regen-record=rewrite")
    recordings = Path("cassettes", "regen")
    shutil.copytree(COPY / recordings, HERE / recordings)


if __name__ == "__main__":
    main()
