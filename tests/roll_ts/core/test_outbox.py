"""What is said is answered once, or falls due (R3, R26)."""

from __future__ import annotations

from roll_ts.core.alphabet import Checkpoint, SetTimer
from roll_ts.core.outbox import Outbox


def test_R3_an_answer_counts_once():
    out = Outbox()
    command = out.say(Checkpoint, within=5.0, awaits="trainer", version=1)
    assert out.answered(command.id) is command
    assert out.answered(command.id) is None
    assert out.late_answers == 1


def test_R26_a_command_falls_due_at_its_deadline_and_then_waits_no_longer():
    out = Outbox()
    first = out.say(Checkpoint, within=5.0, awaits="trainer", version=1)
    second = out.say(Checkpoint, within=9.0, awaits="trainer", version=2)
    out.now = 5.0
    assert out.overdue() == [first]
    assert out.answered(first.id) is None
    assert list(out.waiting) == [second.id]


def test_R26_the_timer_is_set_for_the_earliest_deadline():
    out = Outbox()
    out.say(Checkpoint, within=9.0, awaits="trainer", version=1)
    out.set_alarm(4.0, "trajectory", 7)
    assert [command.at for command in out.take() if isinstance(command, SetTimer)] == [4.0]
    out.now = 4.0
    assert out.overdue_alarms() == [("trajectory", 7)]
    assert [command.at for command in out.take() if isinstance(command, SetTimer)] == [9.0]


def test_a_called_off_command_never_falls_due():
    out = Outbox()
    command = out.say(Checkpoint, within=1.0, awaits="trainer", version=1)
    out.call_off(command.id)
    out.now = 2.0
    assert out.overdue() == []
