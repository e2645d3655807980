"""The update that the formulas ask for, written from the papers: float64, plain transformers, token after token.

Shares nothing with `roll_ts.trainers`: no function, no tensor shape, no batching. Slow on purpose.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch


@dataclass
class Episode:
    """One sample as plain lists: tokens, which of them were generated, their behaviour log-probs and versions."""

    tokens: list[int]
    made: list[bool]
    behaviour: list[float]
    versions: list[int]
    group: str
    reward: float
    truncated: bool


@dataclass
class Asked:
    """The settings of the update, by the names of the configuration."""

    advantage: str = "grpo"
    loss_norm: str = "token"
    mask_truncated: bool = False
    ratio: str = "token"
    clip_low: float | None = None
    clip_high: float | None = None
    dual_clip: float | None = None
    truncate_weight: float | None = 2.0
    weight_level: str = "token"
    weight_source: str = "all"
    reject_level: str = "none"
    reject_low: float = 0.0
    reject_high: float | None = None
    kl_weight: float = 0.0
    kl_estimator: str = "k3"
    entropy_weight: float = 0.0


def episode_advantages(kind: str, episodes: Sequence[Episode]) -> list[float]:
    rewards = [e.reward for e in episodes]
    peers = [[o.reward for o in episodes if o.group == e.group] for e in episodes]
    if kind == "reinforce_pp":
        mean = sum(rewards) / len(rewards)
        deviation = math.sqrt(sum((r - mean) ** 2 for r in rewards) / len(rewards))
        return [(r - mean) / (deviation + 1e-6) for r in rewards]
    if kind == "rloo":
        return [
            0.0 if len(own) == 1 else r - (sum(own) - r) / (len(own) - 1) for r, own in zip(rewards, peers, strict=True)
        ]
    centred = [r - sum(own) / len(own) for r, own in zip(rewards, peers, strict=True)]
    if kind == "dr_grpo":
        return centred
    if kind == "reinforce_pp_baseline":
        deviation = math.sqrt(sum(c * c for c in centred) / len(centred))
        return [c / (deviation + 1e-6) for c in centred]
    deviations = [math.sqrt(sum((x - sum(own) / len(own)) ** 2 for x in own) / len(own)) for own in peers]
    return [c / (d + 1e-6) for c, d in zip(centred, deviations, strict=True)]


def update_loss(
    asked: Asked,
    model: Any,
    episodes: Sequence[Episode],
    version: int,
    old: Sequence[dict[int, float]] | None = None,
    reference: Any = None,
) -> torch.Tensor:
    """The loss of one optimizer step over all the episodes. `old`: per episode log pi_old by position; None: pi_old is
    the model as it is. `reference`: a model, for the KL term."""
    gains = episode_advantages(asked.advantage, episodes)
    kept = [e for e in episodes if not (asked.mask_truncated and e.truncated) and any(e.made)]
    all_tokens = sum(sum(e.made) for e in kept)
    loss = torch.zeros((), dtype=torch.float64)
    for index, (episode, gain) in enumerate(zip(episodes, gains, strict=True)):
        if episode not in kept:
            continue
        length = sum(episode.made)
        share = 1 / all_tokens if asked.loss_norm == "token" else 1 / (len(kept) * length)
        now = positions(model, episode)
        before = {t: lp.item() for t, (lp, _) in now.items()} if old is None else old[index]
        corrections = _corrections(asked, episode, before, version)
        log_ratios = {t: lp - before[t] for t, (lp, _) in now.items()}
        mean_ratio = torch.exp(sum(log_ratios.values()) / length)  # type: ignore[arg-type]
        far = positions(reference, episode) if asked.kl_weight else {}
        for t, (lp, h) in now.items():
            r = mean_ratio if asked.ratio == "sequence" else torch.exp(log_ratios[t])
            loss = loss - share * corrections[t] * _surrogate(asked, r, gain)
            if asked.kl_weight:
                d = lp - far[t][0].item()
                kl = {"k1": d, "k2": d * d / 2, "k3": torch.exp(-d) - 1 + d}[asked.kl_estimator]
                loss = loss + share * asked.kl_weight * kl
            loss = loss - share * asked.entropy_weight * h
    return loss


def positions(model: Any, episode: Episode) -> dict[int, tuple[torch.Tensor, torch.Tensor]]:
    """By position of a generated token: its log-prob given what precedes, and the entropy of what it was drawn from."""
    logits = model(torch.tensor([episode.tokens])).logits[0]
    found = {}
    for t, made in enumerate(episode.made):
        if made:
            spread = torch.log_softmax(logits[t - 1], dim=-1)
            found[t] = (spread[episode.tokens[t]], -(spread.exp() * spread).sum())
    return found


def _surrogate(asked: Asked, r: torch.Tensor, gain: float) -> torch.Tensor:
    value = r * gain
    if asked.clip_low is not None and asked.clip_high is not None:
        low, high = 1 - asked.clip_low, 1 + asked.clip_high
        inside = r if low <= r.item() <= high else torch.tensor(low if r.item() < low else high, dtype=torch.float64)
        value = value if value.item() <= (inside * gain).item() else inside * gain
    if asked.dual_clip is not None and gain < 0 and value.item() < asked.dual_clip * gain:
        value = torch.tensor(asked.dual_clip * gain, dtype=torch.float64)
    return value


def _corrections(asked: Asked, episode: Episode, old: dict[int, float], version: int) -> dict[int, float]:
    ratios = {}
    for t in old:
        stale = episode.versions[t] < version
        counts = {"all": True, "stale": stale, "engine": not stale}[asked.weight_source]
        ratios[t] = (math.exp(old[t] - episode.behaviour[t]), counts)
    logs = [math.log(r) for r, counts in ratios.values() if counts]
    product = math.exp(sum(logs))
    mean = math.exp(sum(logs) / max(1, len(logs)))
    found = {}
    for t, (r, counts) in ratios.items():
        own = r if counts else 1.0
        weight = own if asked.weight_level == "token" else product
        judged = {"none": 1.0, "token": own, "sequence": product, "geometric": mean}[asked.reject_level]
        high = math.inf if asked.reject_high is None else asked.reject_high
        bounded = weight if asked.truncate_weight is None else min(weight, asked.truncate_weight)
        out = asked.reject_level != "none" and not asked.reject_low <= judged <= high
        found[t] = 0.0 if out else bounded
    return found
