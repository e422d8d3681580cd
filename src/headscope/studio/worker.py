"""Threads that do what takes time, one thing after the other, while the server goes on to answer."""

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from headscope.studio.guard import Refusal

Result = TypeVar("Result")


class Worker:
    """One thread, and a queue of limited length."""

    def __init__(self, name: str, limit: int) -> None:
        self.limit, self.pending, self.lock = limit, 0, threading.Lock()
        self.queue: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self.thread = threading.Thread(target=self._work, name=name, daemon=True)
        self.thread.start()

    async def run(self, function: Callable[[], Result]) -> Result:
        """Return what a function returns in the thread; refuse it where too much waits already.

        Where the caller is cancelled, what has not begun is dropped.
        """
        return await asyncio.wrap_future(self.submit(function))

    def submit(self, function: Callable[[], Result]) -> "Future[Result]":
        """Put a function into the queue."""
        with self.lock:
            if self.pending >= self.limit:
                raise Refusal(429, f"{self.pending} requests wait already. Try again in a moment.")
            self.pending += 1
        future: Future[Result] = Future()
        self.queue.put((future, function))
        return future

    def stop(self, seconds: float = 2.0) -> None:
        """End the thread after what it does now; wait for it a moment."""
        self.queue.put(None)
        self.thread.join(seconds)

    def _work(self) -> None:
        while (item := self.queue.get()) is not None:
            future, function = item
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(function())
                except BaseException as error:  # the caller gets it
                    future.set_exception(error)
            with self.lock:
                self.pending -= 1
            del item, future, function  # the result may be large
