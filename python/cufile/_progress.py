# SPDX-License-Identifier: Apache-2.0
"""A bar on standard error for work that takes long, on a terminal only.

It is no reason for the work to fail: a process may have no standard error, and
a terminal may hang up.
"""
import contextlib
import sys
import threading
import time
from typing import Optional

_WIDTH = 30
_FIRST_S = 0.5
_EVERY_S = 0.1


def _is_seen() -> bool:
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # there is none, or it was closed
        return False


class Progress:
    """Counts bytes done; may be called from any thread."""

    def __init__(self, what: str, total: int, shown: Optional[bool] = None) -> None:
        self._what, self._total, self._done = what, total, 0
        self._shown = _is_seen() if shown is None else shown
        self._begin = time.monotonic()
        self._next = self._begin + _FIRST_S
        self._drawn = False
        self._lock = threading.Lock()

    def add(self, nbytes: int) -> None:
        with self._lock:
            self._done += nbytes
            now = time.monotonic()
            if self._shown and now >= self._next:
                self._next = now + _EVERY_S
                self._draw(now)

    def _draw(self, now: float) -> None:
        full = self._done * _WIDTH // max(self._total, 1)
        rate = self._done / 1e9 / max(now - self._begin, 1e-9)
        bar = "#" * full + "." * (_WIDTH - full)
        self._write(f"\r{self._what} [{bar}] {self._done / 1e9:.2f} of "
                    f"{self._total / 1e9:.2f} GB, {rate:.1f} GB/s ")
        self._drawn = True

    @staticmethod
    def _write(text: str) -> None:
        with contextlib.suppress(AttributeError, OSError, ValueError):
            sys.stderr.write(text)
            sys.stderr.flush()

    def end(self) -> None:
        """Finishes the line if there is one."""
        with self._lock:
            if self._drawn:
                self._draw(time.monotonic())
                self._write("\n")
            self._shown = False
