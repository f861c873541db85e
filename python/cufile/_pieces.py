# SPDX-License-Identifier: Apache-2.0
"""Runs many requests in a few threads, until all are done or one fails."""
import contextlib
import threading
from typing import Callable, List, Optional

from ._progress import Progress

Piece = Callable[[], int]


class _Work:
    def __init__(self, pieces: List[Piece], progress: Progress) -> None:
        self.pieces = iter(pieces)
        self.progress = progress
        self.error: Optional[BaseException] = None
        self.lock = threading.Lock()

    def next(self) -> Optional[Piece]:
        with self.lock:
            return None if self.error is not None else next(self.pieces, None)

    def stop(self, error: BaseException) -> None:
        with self.lock:
            self.error = self.error or error

    def run(self) -> None:
        try:
            piece = self.next()
            while piece is not None:
                self.progress.add(piece())
                piece = self.next()
        except BaseException as error:  # the caller raises it
            self.stop(error)


def run(pieces: List[Piece], threads: int, progress: Progress) -> None:
    """Runs the pieces; the first error ends it, when nothing runs any more."""
    work = _Work(pieces, progress)
    helpers = [threading.Thread(target=work.run, name="cufile-pieces", daemon=True)
               for _ in range(min(threads, len(pieces)) - 1)]
    try:
        with contextlib.suppress(RuntimeError):  # those that began do it
            for helper in helpers:
                helper.start()
        work.run()
    except BaseException as error:
        work.stop(error)
    for helper in helpers:
        if helper.ident is not None:
            helper.join()
    progress.end()
    failure, work.error = work.error, None
    try:
        if failure is not None:
            raise failure
    finally:
        # the error's traceback has this frame: together they would live on,
        # and the memory that was read into with them
        del failure
