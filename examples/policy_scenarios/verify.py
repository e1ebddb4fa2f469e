"""From a constitution to a verified set of scenarios: the loop, played from a recording.

python examples/policy_scenarios/verify.py two_repairs
python examples/policy_scenarios/verify.py disagreement
"""

import sys
from pathlib import Path

from compiler import ModelCompiler
from judge import ModelJudge
from library import (
    ALLOWLISTS,
    CONSTITUTION,
    INVARIANTS,
    LISTS,
    MEMBERS,
    PROTECTED,
    engine,
    handwritten,
    tools,
)

from pytest_regen import AnthropicProvider, Provider, use_cassette
from pytest_regen.canonical import canonical_json
from pytest_regen.sessions import (
    LoopParts,
    LoopReport,
    ScenarioGeneratorSession,
    build_generator_system_prompt,
    compile_verify_repair,
)

HERE = Path(__file__).parent
CASSETTES = HERE / "cassettes"
ARTIFACT = HERE / "verified" / "scenarios.json"
MODEL = "claude-sonnet-5-5"

GENERATOR_SYSTEM = build_generator_system_prompt(
    CONSTITUTION, tools(), invariants=INVARIANTS, lists=MEMBERS
)


def parts(provider: Provider) -> LoopParts:
    """Return compiler, generator, engine and judge, all of them asking one provider."""
    return LoopParts(
        compiler=ModelCompiler(provider, MODEL),
        generator=lambda _: ScenarioGeneratorSession(
            GENERATOR_SYSTEM, tools(), handwritten(), provider=provider, model=MODEL
        ),
        engine=engine,
        judge=ModelJudge(provider, MODEL),
        handwritten=handwritten(),
        annotations=tools(),
        fingerprint=[canonical_json([PROTECTED, ALLOWLISTS, LISTS])],
    )


def run(name: str, *, artifact: Path | None = None, provider: Provider | None = None) -> LoopReport:
    """Replay one recorded run; no key, no network.

    Args:
        name: of a file in ``cassettes/``.
        artifact: where to keep what was verified.
        provider: who is asked; the recording answers the default.
    """
    command = f"python {HERE / 'record.py'}{' --live' if name == 'live' else ''}"
    with use_cassette(CASSETTES / f"{name}.yaml", record_command=command):
        return compile_verify_repair(
            parts(provider or AnthropicProvider()), artifact=artifact, on_progress=tell
        )


def tell(line: str) -> None:
    """Print one line of progress."""
    print(line, file=sys.stderr)  # noqa: T201 - a script


if __name__ == "__main__":
    report = run(sys.argv[1] if len(sys.argv) > 1 else "two_repairs")
    print(report.describe())  # noqa: T201 - a script
    sys.exit(0 if report.passed else 1)
