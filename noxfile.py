"""The suite on every supported Python, and what else CI runs: `pip install nox`, then `nox -l`."""

import nox

nox.options.sessions = ["tests", "lint", "types", "docs"]
nox.options.reuse_existing_virtualenvs = True
nox.options.error_on_missing_interpreters = False

PYTHONS = ["3.11", "3.12", "3.13", "3.14"]


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Run the suite; further arguments go to pytest."""
    session.install("-e", ".[docs,test]")
    words = session.posargs or ["-n", "2", "--dist", "worksteal", "-m", "not sweep"]
    session.run("pytest", "-q", *words)


@nox.session(python=PYTHONS[0])
def oldest(session: nox.Session) -> None:
    """Run with the oldest dependencies, and with versions that public suites have locked."""
    session.install("-e", ".[test]")
    session.run("pytest", "-q", "-m", "environments", "tests/environments", *session.posargs)


@nox.session(python=PYTHONS[0])
def lint(session: nox.Session) -> None:
    """Check style, and workflows for what could be abused."""
    session.install("ruff>=0.14", "zizmor")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("zizmor", "--offline", "--quiet", ".")


@nox.session(python=PYTHONS[0])
def types(session: nox.Session) -> None:
    """Check types."""
    session.install("-e", ".[docs,test]")
    session.run("mypy")


@nox.session(python=PYTHONS[0])
def docs(session: nox.Session) -> None:
    """Build the site; a warning is an error."""
    session.install("-e", ".[docs]")
    session.run("mkdocs", "build", "--strict", env={"NO_MKDOCS_2_WARNING": "1"})


@nox.session(python=PYTHONS[0])
def sizes(session: nox.Session) -> None:
    """Measure how large the package and each of its extras are, installed."""
    session.run("python", "benchmarks/install.py")
