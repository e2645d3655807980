"""Who may compute on which device (R2), and the window in which weights lie on both sides of a sync (R22).

Invariant: a device has at most one compute holder; a holder changes only through nobody.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from roll_ts.core.errors import IllegalTransition

TRAINING = "training"


def rollout(rank: int) -> str:
    """The holder name of a rollout rank."""
    return f"rollout:{rank}"


@dataclass
class Leases:
    """Compute leases by device, and the sync window. `window` is the epoch of the open window, −1 when shut;
    its holders may keep `window_bytes` of weights beside the compute holder's memory (0: not limited)."""

    window_bytes: int = 0
    holders: dict[int, str] = field(default_factory=dict)
    window: int = -1
    window_used: int = 0

    def grant(self, holder: str, devices: tuple[int, ...]) -> None:
        """Give every device to `holder`, all or none. Raises IllegalTransition when one is held by another."""
        # VAL: VAL_NON_EMPTY(devices)
        if len(devices) == 0:
            raise ValueError(f"grant: devices must not be empty, got {devices!r:.200}")
        # END VAL 2ed405
        # VAL: VAL_NON_EMPTY(holder)
        if len(holder) == 0:
            raise ValueError(f"grant: holder must not be empty, got {holder!r:.200}")
        # END VAL 408d69
        taken = sorted(device for device in devices if self.holders.get(device, holder) != holder)
        # VAL: VAL_LENGTH(taken, max=0, error=IllegalTransition) - a device has one holder
        if len(taken) != 0:
            raise IllegalTransition(
                f"grant: taken must have no elements, got {len(taken)!r}: {taken!r:.200} - a device has one holder"
            )
        # END VAL e0af8c
        for device in devices:
            self.holders[device] = holder

    def give_back(self, holder: str) -> tuple[int, ...]:
        """End all leases of `holder`; returns its devices. The holder has reported its memory released."""
        # VAL: VAL_NON_EMPTY(holder)
        if len(holder) == 0:
            raise ValueError(f"give_back: holder must not be empty, got {holder!r:.200}")
        # END VAL bb9f76
        mine = tuple(sorted(device for device, own in self.holders.items() if own == holder))
        for device in mine:
            del self.holders[device]
        return mine

    def held_by(self, device: int) -> str | None:
        """The compute holder of a device, or None."""
        return self.holders.get(device)

    def open_window(self, epoch: int, used: int) -> None:
        """Open the sync window for `epoch` with `used` bytes of parameters. Raises IllegalTransition when one is
        open for another epoch, ValueError over the budget."""
        # VAL: VAL_STATE_IN(self.window, (-1, epoch), error=IllegalTransition) - one sync window at a time
        if self.window not in (-1, epoch):
            raise IllegalTransition(
                f"open_window: self.window must be in one of the states {((-1, epoch))!r:.200}, got "
                f"{self.window!r:.200} - one sync window at a time"
            )
        # END VAL c97df0
        # VAL: VAL_INT_RANGE(used, min=0, max=self.window_bytes or used)
        if not 0 <= used <= (self.window_bytes or used):
            raise ValueError(f"open_window: used must lie in [0, {(self.window_bytes or used)!r:.200}], got {used!r}")
        # END VAL a2c5a3
        self.window, self.window_used = epoch, used

    def close_window(self) -> None:
        """Shut the sync window: parameters and buffers are released."""
        self.window, self.window_used = -1, 0
