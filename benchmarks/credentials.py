"""Credentials found and false alarms: this package beside detect-secrets and the rules of gitleaks.

    python benchmarks/credentials.py [--gitleaks-rules gitleaks.toml] [--each 10] [--missed]

One corpus for all: every kind of ``credential_kinds.py``, drawn by hypothesis in the format its
vendor documents, in JSON, a form, a header, an event of a stream, prose or code; and as many texts
that only resemble credentials. detect-secrets is used where it is installed, with its defaults, on
files as it is meant to be. gitleaks is no package: its public rules (``config/gitleaks.toml``) are
run by Python where they are given, with their keywords, entropies and allowlists.
"""

import argparse
import json
import math
import re
import tempfile
import time
import tomllib
import urllib.parse
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from byte_code import keep_byte_code
from credential_kinds import INNOCENT, KINDS, NAMED_KINDS, drawn
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from table import print_table

from pytest_regen.cassettes.scrubbing import secrets_in

Finds = Callable[[Sequence[str]], Iterable[bool]]
"""Whether a tool reports anything in each of these texts."""


class Text(NamedTuple):
    """A text of the corpus."""

    kind: str
    text: str


PLACES: dict[str, Callable[[str], str]] = {
    "JSON": lambda value: json.dumps({"role": "user", "content": f"Here: {value} and more"}),
    "JSON in JSON": lambda value: json.dumps({"arguments": json.dumps({"note": value})}),
    "form": lambda value: urllib.parse.urlencode({"to": "joe", "text": value, "page": "2"}),
    "header": lambda value: f"x-note: {value.replace(chr(10), ' ')}",
    "event": lambda value: f"event: delta\ndata: {json.dumps({'delta': {'text': value}})}\n\n",
    "prose": lambda value: f"I found this in the log:\n{value}\nWhat do I do about it?",
    "code": lambda value: f"client = Client(\n    {value!r},\n)\n",
}
NAMED_PLACES: dict[str, Callable[[str, str], str]] = {
    "JSON": lambda name, value: json.dumps({"id": 7, name: value}),
    "JSON in JSON": lambda name, value: json.dumps({"arguments": json.dumps({name: value})}),
    "form": lambda name, value: urllib.parse.urlencode({"to": "joe", name: value}),
    "header": lambda name, value: f"{name}: {value}",
    "event": lambda name, value: f"data: {json.dumps({'delta': {name: value}})}\n\n",
    "environment": lambda name, value: f"export {name}={value}",
    "code": lambda name, value: f"{name.replace('-', '_')} = {value!r}\n",
}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gitleaks-rules", type=Path, help="the file config/gitleaks.toml")
    parser.add_argument("--each", type=int, default=10, help="texts of each kind (default 10)")
    parser.add_argument("--missed", action="store_true", help="list the kinds each tool misses")
    chosen = parser.parse_args()
    keep_byte_code()
    tools: dict[str, Finds] = {"pytest-regen": ours}
    detect = detect_secrets()
    if detect:
        tools["detect-secrets"] = detect
    if chosen.gitleaks_rules:
        tools["gitleaks' rules"] = gitleaks(chosen.gitleaks_rules)
    planted, innocent = planted_texts(chosen.each), innocent_texts(chosen.each)
    rows, missed = [], {}
    for tool, finds in tools.items():
        began = time.process_time()
        caught = list(finds([text.text for text in planted]))
        false = list(finds([text.text for text in innocent]))
        spent = time.process_time() - began
        kinds = by_kind(planted, caught)
        missed[tool] = [kind for kind, rate in kinds.items() if rate < 1]
        whole = sum(rate == 1 for rate in kinds.values())
        wrong = [kind for kind, rate in by_kind(innocent, false).items() if rate]
        missed[f"{tool}, false"] = wrong
        size = sum(len(text.text) for text in (*planted, *innocent)) / 1e6
        rows.append(
            (
                tool,
                f"{sum(caught):,} of {len(caught):,} ({sum(caught) / len(caught):.0%})",
                f"{whole} of {len(kinds)}",
                f"{sum(false):,} of {len(false):,} ({sum(false) / len(false):.0%})",
                f"{len(wrong)} of {len(INNOCENT)}",
                f"{spent / size * 1000:,.0f} ms",
            )
        )
    print_table(
        ("tool", "caught", "kinds always caught", "false", "innocents ever hit", "per MB"), rows
    )
    for tool, names in missed.items() if chosen.missed else ():
        print(f"\n{tool}: {', '.join(names) or 'none'}")


def planted_texts(per_kind: int) -> list[Text]:
    """Return texts that hold a credential, and nothing else that looks like one."""
    texts = []
    for kind, template in KINDS.items():
        for value, place in examples(drawn(template), tuple(PLACES), per_kind):
            texts.append(Text(kind, PLACES[place](value)))
    for kind, (name, template) in NAMED_KINDS.items():
        for value, place in examples(drawn(template), tuple(NAMED_PLACES), per_kind):
            texts.append(Text(kind, NAMED_PLACES[place](name, value)))
    return texts


def innocent_texts(per_kind: int) -> list[Text]:
    """Return texts that hold none."""
    return [
        Text(kind, value)
        for kind, template in INNOCENT.items()
        for value, _ in examples(drawn(template), ("",), per_kind)
    ]


def examples(
    values: st.SearchStrategy[str], places: Sequence[str], count: int
) -> list[tuple[str, str]]:
    """Return what hypothesis draws, the same in every run."""
    pairs: list[tuple[str, str]] = []

    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(value=values, place=st.sampled_from(places))
    def draw(value: str, place: str) -> None:
        pairs.append((value, place))

    draw()
    return pairs


def by_kind(texts: Sequence[Text], is_caught: Sequence[bool]) -> dict[str, float]:
    """Return which part of each kind was reported."""
    verdicts: defaultdict[str, list[bool]] = defaultdict(list)
    for text, is_found in zip(texts, is_caught, strict=True):
        verdicts[text.kind].append(is_found)
    return {kind: sum(each) / len(each) for kind, each in verdicts.items()}


def ours(texts: Sequence[str]) -> Iterator[bool]:
    """As bodies of recordings are searched."""
    for text in texts:
        yield bool(secrets_in(text.encode()))


def detect_secrets() -> Finds | None:
    """Return detect-secrets with its default plugins and filters, if it is installed."""
    try:
        from detect_secrets.core.secrets_collection import (
            SecretsCollection,
        )
        from detect_secrets.settings import default_settings
    except ImportError:
        print("detect-secrets is not installed: pip install detect-secrets")
        return None

    def finds(texts: Sequence[str]) -> Iterator[bool]:
        with tempfile.TemporaryDirectory() as folder, default_settings():
            for number, text in enumerate(texts):
                file = Path(folder) / f"{number}.txt"
                file.write_text(text, "utf-8")
                secrets = SecretsCollection()
                secrets.scan_file(str(file))
                yield bool(list(secrets))

    return finds


class Rule(NamedTuple):
    """A rule of gitleaks."""

    pattern: re.Pattern[str]
    keywords: tuple[str, ...]
    entropy: float
    group: int
    allowed: tuple[tuple[str, re.Pattern[str]], ...]
    stop_words: tuple[str, ...]


def gitleaks(path: Path) -> Finds:
    """Return the rules of a configuration of gitleaks, as far as Python knows their patterns."""
    config = tomllib.loads(path.read_text("utf-8"))
    everywhere = allowances([config.get("allowlist", {})])
    rules, refused = [], 0
    for rule in config["rules"]:
        if "regex" not in rule:
            continue
        try:
            allowed, words = allowances(rule.get("allowlists", []))
            rules.append(
                Rule(
                    re.compile(translated(rule["regex"])),
                    tuple(map(str.lower, rule.get("keywords", ()))),
                    float(rule.get("entropy", 0)),
                    int(rule.get("secretGroup", 0)),
                    (*allowed, *everywhere[0]),
                    (*words, *everywhere[1]),
                )
            )
        except re.error:
            refused += 1
    print(f"gitleaks: {len(rules)} rules, {refused} that Python cannot compile")

    def finds(texts: Sequence[str]) -> Iterator[bool]:
        for text in texts:
            lowered = text.lower()
            yield any(
                matches(rule, text)
                for rule in rules
                if not rule.keywords or any(word in lowered for word in rule.keywords)
            )

    return finds


def allowances(
    listed: Iterable[dict[str, Any]],
) -> tuple[tuple[tuple[str, re.Pattern[str]], ...], tuple[str, ...]]:
    """Return the patterns and words of allowlists; those for paths say nothing here."""
    patterns, words = [], []
    for allowance in listed:
        if allowance.get("paths") and allowance.get("condition") == "AND":
            continue
        target = allowance.get("regexTarget", "secret")
        patterns += [
            (target, re.compile(translated(pattern))) for pattern in allowance.get("regexes", ())
        ]
        words += [word.lower() for word in allowance.get("stopwords", ())]
    return tuple(patterns), tuple(words)


def translated(pattern: str) -> str:
    """Return a pattern of RE2 as Python writes it."""
    classes = {"alnum": "A-Za-z0-9", "alpha": "A-Za-z", "digit": "0-9", "xdigit": "0-9A-Fa-f"}
    for name, letters in classes.items():
        pattern = pattern.replace(f"[:{name}:]", letters)
    pattern = pattern.replace(r"\z", r"\Z")
    # A flag in the middle holds for the rest of its group there.
    at = pattern.find("(?i)", 1)
    if at > 0:
        pattern = (
            f"{pattern[:at]}(?i:{pattern[at + 4 :]})"
            if balanced(pattern[at:])
            else ("(?i)" + pattern.replace("(?i)", ""))
        )
    return pattern


def balanced(pattern: str) -> bool:
    """Whether every group that is closed in a part of a pattern is opened in it."""
    depth = 0
    for sign in re.sub(r"\\.|\[[^\]]*\]", "", pattern):
        depth += (sign == "(") - (sign == ")")
        if depth < 0:
            return False
    return depth == 0


def matches(rule: Rule, text: str) -> bool:
    """Whether a rule reports anything in a text."""
    for match in rule.pattern.finditer(text):
        groups = [group for group in match.groups() if group]
        secret = match[rule.group] if rule.group else (groups[0] if groups else match[0])
        line = text[text.rfind("\n", 0, match.start()) + 1 :].partition("\n")[0]
        targets = {"secret": secret, "match": match[0], "line": line}
        if rule.entropy and entropy(secret) <= rule.entropy:
            continue
        if any(pattern.search(targets.get(target, secret)) for target, pattern in rule.allowed):
            continue
        if any(word in secret.lower() for word in rule.stop_words):
            continue
        return True
    return False


def entropy(text: str) -> float:
    """Return Shannon bits a character."""
    counts = Counter(text).values()
    return -sum(n / len(text) * math.log2(n / len(text)) for n in counts)


if __name__ == "__main__":
    main()
