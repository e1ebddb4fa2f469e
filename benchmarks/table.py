"""Tables as Markdown, as the README holds them."""

from collections.abc import Iterable, Sequence

__all__ = ["print_table"]


def print_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table."""
    print(f"| {' | '.join(head)} |")
    print(f"|{'---|' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")
