"""How a simulation ends badly."""


class SimulationError(RuntimeError):
    """The run cannot go on; the message says when and why."""


class ContractBroken(SimulationError):
    """The scheduler asked for something that its own contract forbids (a fault of the core, not of the run)."""


class Stalled(SimulationError):
    """Nothing more will ever happen, or the limit of time or events is passed, and the run has not finished."""
