"""Calls from any thread to one owner thread, each with a deadline and an answer.

Invariants: a call is run at most once, by the owner; one that timed out before it began is never run; after `close`
no call is taken, and everyone still waiting gets the error that says why.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(slots=True)
class _Call:
    name: str
    work: Callable[[], Any]
    answer: Future[Any] = field(default_factory=Future)


class Mailbox:
    """`owner` names the party awaited in time-outs; `timeout_s` bounds every wait."""

    def __init__(self, owner: str, timeout_s: float) -> None:
        self.doing = "starting"
        self._owner = owner
        self._timeout_s = timeout_s
        self._calls: queue.SimpleQueue[_Call] = queue.SimpleQueue()
        self._gate = threading.Lock()
        self._end: Exception | None = None

    # Any thread

    def ask(self, name: str, work: Callable[[], T]) -> T:
        """Have the owner run `work`; its result or its exception is the caller's."""
        call = _Call(name, work)
        with self._gate:
            self.check_open()
            self._calls.put(call)
        return self.wait(call.answer, name)

    def wait(self, answer: Future[T], name: str) -> T:
        """The answer, or a `TimeoutError` naming the owner and what it is doing instead."""
        try:
            return answer.result(self._timeout_s)
        except FutureTimeout:
            if answer.done():
                raise
            answer.cancel()
            raise TimeoutError(
                f"{self._owner} did not answer {name!r} within {self._timeout_s:g} s; its thread is in {self.doing!r}"
            ) from None

    @property
    def closed(self) -> bool:
        """Whether calls are refused."""
        return self._end is not None

    def check_open(self) -> None:
        """Raise a copy of the error the mailbox was closed with."""
        # unmanaged: the error is whatever the mailbox was closed with
        if self._end is not None:
            raise type(self._end)(*self._end.args)

    # The owner

    def __bool__(self) -> bool:
        return not self._calls.empty()

    def answer_one(self) -> None:
        """Wait for a call and run it. Whatever it raises goes to the caller."""
        call = self._calls.get()
        if not call.answer.set_running_or_notify_cancel():
            return
        self.doing = call.name
        try:
            result = call.work()
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that called
            call.answer.set_exception(error)
        else:
            call.answer.set_result(result)

    def close(self, error: Exception) -> None:
        """Refuse all calls from now on, waiting ones included, with this error."""
        with self._gate:
            self._end = error
        while self:
            answer = self._calls.get().answer
            if answer.set_running_or_notify_cancel():
                answer.set_exception(error)
