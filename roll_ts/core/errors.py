"""The ways in which the scheduler refuses. Nothing has changed when one of these is raised."""


class SchedulerError(Exception):
    """Base of the scheduler's own refusals."""


class IllegalTransition(SchedulerError):
    """A rank, lease or attempt was asked for a step that its state does not allow (R4)."""


class UnknownId(SchedulerError):
    """An event names a rank, trajectory or group that was never there."""


class InvariantBroken(SchedulerError):
    """The state contradicts a rule; the message names the rule."""
