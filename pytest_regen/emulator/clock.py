"""The emulator's idea of now, which a test may set."""

import threading
import time

__all__ = ["Clock"]


class Clock:
    """Seconds since the epoch; follows the system's clock until it is set.

    Args:
        at: where given, time stands still there until it is moved.
    """

    def __init__(self, at: float | None = None) -> None:
        self._lock = threading.Lock()
        self._frozen = at
        self._offset = 0.0

    def now(self) -> float:
        """Return the seconds since the epoch."""
        with self._lock:
            return self._now()

    def set(self, at: float) -> None:
        """Stop the clock at ``at`` seconds since the epoch."""
        with self._lock:
            self._frozen = at

    def advance(self, seconds: float) -> None:
        """Move the clock forward; it keeps running if it ran."""
        with self._lock:
            if self._frozen is None:
                self._offset += seconds
            else:
                self._frozen += seconds

    def _now(self) -> float:
        return time.time() + self._offset if self._frozen is None else self._frozen
