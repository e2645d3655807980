"""Who may compute on which device (R2), and the window in which weights lie on both sides of a sync (R22).

Invariant: a device has at most one compute holder; a holder changes only through nobody.

The window has no budget of bytes: what lies in it is one copy of the parameters on either side, and how much a device
holds beside that is known to the parties alone; the party that does not fit says so and is named (D-3).
"""

from __future__ import annotations

from collections.abc import Iterable

from roll_ts.core.errors import IllegalTransition

TRAINING = "training"


def rollout(rank: int) -> str:
    """The holder name of a rollout rank."""
    return f"rollout:{rank}"


class Leases:
    """Compute leases by device. `taken` counts the trainer's devices that somebody else holds."""

    def __init__(self, train_devices: Iterable[int] = ()) -> None:
        self.holders: dict[int, str] = {}
        self.window_open = False
        self.taken = 0
        self._train = frozenset(train_devices)
        self._devices: dict[str, tuple[int, ...]] = {}

    def grant(self, holder: str, devices: tuple[int, ...]) -> None:
        """Give every device to `holder`, all or none. Raises IllegalTransition when one is held by another."""
        # VAL: VAL_NON_EMPTY(devices)
        if len(devices) == 0:
            raise ValueError(f"Leases.grant: devices must not be empty, got {devices!r:.200}")
        # END VAL e13049
        # VAL: VAL_NON_EMPTY(holder)
        if len(holder) == 0:
            raise ValueError(f"Leases.grant: holder must not be empty, got {holder!r:.200}")
        # END VAL 5ca3c9
        taken = sorted(device for device in devices if self.holders.get(device, holder) != holder)
        # VAL: VAL_LENGTH(taken, max=0, error=IllegalTransition) - a device has one holder
        if len(taken) != 0:
            raise IllegalTransition(
                f"Leases.grant: taken must have no elements, got {len(taken)!r}: {taken!r:.200} - a device "
                "has one holder"
            )
        # END VAL 4456f6
        fresh = tuple(device for device in devices if device not in self.holders)
        for device in fresh:
            self.holders[device] = holder
        self._devices[holder] = self._devices.get(holder, ()) + fresh
        if holder != TRAINING:
            self.taken += sum(device in self._train for device in fresh)

    def give_back(self, holder: str) -> tuple[int, ...]:
        """End all leases of `holder`; returns its devices. The holder has reported its memory released, or is dead."""
        # VAL: VAL_NON_EMPTY(holder)
        if len(holder) == 0:
            raise ValueError(f"Leases.give_back: holder must not be empty, got {holder!r:.200}")
        # END VAL d71b07
        mine = tuple(sorted(self._devices.pop(holder, ())))
        for device in mine:
            del self.holders[device]
        if holder != TRAINING:
            self.taken -= sum(device in self._train for device in mine)
        return mine

    def held_by(self, device: int) -> str | None:
        """The compute holder of a device, or None."""
        return self.holders.get(device)

    def free(self, devices: tuple[int, ...]) -> bool:
        """Whether nobody holds any of `devices`."""
        return all(device not in self.holders for device in devices)
