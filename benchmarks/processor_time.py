"""Processor time of child processes."""

import resource

__all__ = ["children_seconds"]


def children_seconds() -> float:
    """Return what all children that have ended took so far, those of their own included."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
