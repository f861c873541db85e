# SPDX-License-Identifier: Apache-2.0
"""The threads behind pread, pwrite and model loading.

Made by the first request that wants them. A forked child has none of its
parent's threads, so it makes its own; what the parent had queued is the
parent's.
"""
import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Callable, Optional, TypeVar

THREADS = 16

_T = TypeVar("_T")
_lock = threading.Lock()
_executor: Optional[ThreadPoolExecutor] = None


def submit(call: Callable[..., _T], *arguments: Any) -> "Future[_T]":
    """Runs call(*arguments) in a thread of the pool."""
    global _executor
    with _lock:
        if _executor is None:
            _executor = ThreadPoolExecutor(THREADS, "cufile")
        return _executor.submit(call, *arguments)


def _start_afresh() -> None:
    global _executor, _lock
    _executor, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_start_afresh)
