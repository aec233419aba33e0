"""Threads that share one scan over int8 rows, which takes most of a dense search and needs no interpreter."""

import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import Lock
from typing import TypeVar

Item = TypeVar("Item")

MOST_THREADS = 4


def processors() -> int:
    """Return how many processors this process may use.

    Example:
        >>> processors() >= 1
        True
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Scanners:
    """Up to three threads besides the caller's own, started by the first scan that is long enough to share.

    Example:
        >>> scanners, seen = Scanners(threads=2), []
        >>> scanners.each(seen.append, [1, 2, 3])
        >>> sorted(seen)
        [1, 2, 3]
        >>> scanners.close()
    """

    def __init__(self, threads: int | None = None) -> None:
        self._others = min(threads or processors(), MOST_THREADS) - 1
        self._pool: ThreadPoolExecutor | None = None
        self._lock = Lock()

    def each(self, work: Callable[[Item], None], items: Sequence[Item]) -> None:
        """Call `work` once for each item, in no particular order, and return when all are done.

        The caller's thread takes part: where the other processors are busy with something else it waits for them no
        longer than for one item. What `work` raises is raised here.
        """
        left = deque(items)
        helping = self._helping(work, left, min(self._others, len(items) - 1))
        try:
            _work_off(work, left)
        finally:
            left.clear()
            running = [future for future in helping if not future.cancel()]
            wait(running)  # before any of them raises: nobody writes into the caller's arrays once this has ended
            for future in running:
                future.result()

    def _helping(self, work: Callable[[Item], None], left: deque[Item], threads: int) -> list[Future[None]]:
        if threads < 1:
            return []
        with self._lock:  # until the work is handed over, so that nobody closes the pool in between
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._others, "kbretrieval-scan")
            return [self._pool.submit(_work_off, work, left) for _ in range(threads)]

    def close(self) -> None:
        """Stop the threads; a later scan starts them again."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown()


def _work_off(work: Callable[[Item], None], left: deque[Item]) -> None:
    while True:
        try:
            item = left.popleft()
        except IndexError:
            return
        work(item)
