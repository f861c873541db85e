# SPDX-License-Identifier: Apache-2.0
"""The threads behind pread, pwrite and model loading.

Made by the first request that wants them. A forked child has none of its
parent's threads, so it makes its own; what the parent had queued is the
parent's.
"""
import os
import threading
import traceback
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Callable, List, Optional, TypeVar

THREADS = 16

_T = TypeVar("_T")
_lock = threading.Lock()
_executor: Optional[ThreadPoolExecutor] = None


def _carry(task: List[Any]) -> None:
    """An error's traceback leads to this frame, to its caller's and to those of
    the call: what they still had would live on with the error, and all are
    emptied."""
    future, call, arguments = task.pop()
    try:
        if future.set_running_or_notify_cancel():
            future.set_result(call(*arguments))
    except BaseException as error:
        traceback.clear_frames(error.__traceback__)
        future.set_exception(error)
    finally:
        del future, call, arguments


def submit(call: Callable[..., _T], *arguments: Any) -> "Future[_T]":
    """Runs call(*arguments) in a thread of the pool."""
    global _executor
    future: "Future[_T]" = Future()
    with _lock:
        if _executor is None:
            _executor = ThreadPoolExecutor(THREADS, "cufile")
        try:
            _executor.submit(_carry, [(future, call, arguments)])
        except BaseException:
            # where no thread can be started it is queued all the same
            future.cancel()
            raise
    return future


def _start_afresh() -> None:
    global _executor, _lock
    _executor, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_start_afresh)
