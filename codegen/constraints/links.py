"""Who shares a quantity with whom: what a changed constraint reaches."""

from __future__ import annotations

from collections.abc import Sequence

from codegen.constraints.claims import Claim, written_claims
from codegen.constraints.quantities import Quantities
from codegen.document.model import Document


def shared_quantities(documents: Sequence[Document]) -> dict[str, dict[str, str]]:
    """Decision or goal (`id:D-3`) or entry (its identity) → the others that a quantity ties it to → that quantity.

    A decision is tied to every other one that constrains the quantity, and to the entry whose parameter or field it is;
    that entry is tied to the decision.
    """
    known = Quantities(documents)
    by_quantity: dict[str, list[str]] = {}
    for claim in written_claims(documents, known)[0]:
        for name in claim.names:
            by_quantity.setdefault(name.removeprefix("len(").rstrip(")"), []).append(_owner(claim))
    found: dict[str, dict[str, str]] = {}
    for name, owners in by_quantity.items():
        entry = known.by_name[name].entry if name in known.by_name else None
        tied = [*owners, *([entry] if entry else [])]
        for one in tied:
            for other in tied:
                if one != other:
                    found.setdefault(one, {}).setdefault(other, name)
    return found


def _owner(claim: Claim) -> str:
    return f"{claim.document.id}:{claim.who}"
