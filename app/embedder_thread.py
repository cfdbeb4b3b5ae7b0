"""A thread for calls that may block, raise anything, or never come back: an embedder is somebody else's code."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from time import monotonic
from types import TracebackType
from typing import Any, Self, TypeVar

from graph.model.errors import EmbedderUnavailable, EmbeddingFailed, LastroError

MOST_HANGING = 8
"""Threads that may hang at once; no thread of Python's can be ended, so further calls are refused until one comes back."""

Result = TypeVar("Result")


class EmbedderHangs(EmbedderUnavailable):
    """The embedder did not come back in time."""

    code = "embedder_hangs"
    message = "The embedding model did not answer in time."


@dataclass(slots=True)
class _Call:
    work: Callable[[], Any]
    answer: Future[Any] = field(default_factory=Future[Any])


class _Answering:
    """Passes on whatever happens within it: a model may raise what it likes, and the one that waits must hear of it."""

    def __init__(self, answer: Future[Any]) -> None:
        self._answer = answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        if error is None:
            return False
        # Its type and nothing of its text, which may hold what a unit says.
        told = error if isinstance(error, LastroError) else EmbeddingFailed(f"The embedding model failed with {type(error).__name__}.")
        self._answer.set_exception(told)
        return True


class _Thread(threading.Thread):
    """One thread with its calls. A daemon: one that hangs must not keep the service from ending."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self.began: float | None = None
        """When the call that is being worked on began."""

    def run(self) -> None:
        while (call := self.calls.get()) is not None:
            if not call.answer.set_running_or_notify_cancel():
                continue
            self.began = monotonic()
            with _Answering(call.answer):
                call.answer.set_result(call.work())
            self.began = None
            del call  # what it holds would stay until the next one


class EmbedderThread:
    """Runs calls one after the other in a thread of its own."""

    def __init__(self, name: str, hangs_after_s: float) -> None:
        self._name = name
        self._hangs_after_s = hangs_after_s
        self._thread: _Thread | None = None
        self._given_up: list[_Thread] = []

    async def run(self, work: Callable[[], Result], timeout_s: float) -> Result:
        """What ``work`` returns, within ``timeout_s`` seconds; waiting for its turn counts.

        Raises:
            EmbedderHangs: it did not come back.
            EmbedderUnavailable: too many calls before it never did.
            EmbeddingFailed: it raised something that is none of ours.
            whatever of ours it raises.
        """
        call = _Call(work)
        self._working().calls.put(call)
        try:
            async with asyncio.timeout(timeout_s):
                return await asyncio.wrap_future(call.answer)
        except TimeoutError:
            if timeout_s >= self._hangs_after_s:
                self._give_up()
            raise EmbedderHangs from None

    def close(self) -> None:
        """Let the thread end when it is done."""
        if self._thread is not None:
            self._thread.calls.put(None)
            self._thread = None

    def _working(self) -> _Thread:
        if self._thread is not None and (began := self._thread.began) is not None and monotonic() - began > self._hangs_after_s:
            self._give_up()
        if self._thread is None:
            self._given_up = [other for other in self._given_up if other.is_alive()]
            if len(self._given_up) >= MOST_HANGING:
                raise EmbedderUnavailable("The embedding model hangs.")
            self._thread = _Thread(self._name)
            self._thread.start()
        return self._thread

    def _give_up(self) -> None:
        if self._thread is not None:
            self._given_up.append(self._thread)
            self._thread.calls.put(None)  # should it come back after all
            self._thread = None
