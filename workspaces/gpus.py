"""Which GPUs a workspace gets: its wish against the host's cards and what others hold; pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from agent.protocol.counting import counted
from trailer.errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class GpuWish(msgspec.Struct, frozen=True, kw_only=True):
    """By count or by ids (an id may be the card's index). `shared`: others that share may use the
    same card at the same time; by default a card is one workspace's alone."""

    count: int = 0
    device_ids: tuple[str, ...] = ()
    shared: bool = False


@dataclass(frozen=True, kw_only=True)
class Card:
    id: str
    index: int = 0
    name: str = ""

    def __str__(self) -> str:
        named = f"{self.name}, " if self.name else ""
        return f"GPU {self.index} ({named}{self.id})"


@dataclass(frozen=True, kw_only=True)
class Held:
    """One card in another workspace's hands."""

    gpu: str
    workspace: str
    shared: bool = False


def cards_of(reported: Iterable[dict[str, Any]]) -> tuple[Card, ...]:
    """The host's inventory, as its heartbeat told it."""
    cards = (
        Card(id=str(gpu["id"]), index=int(gpu.get("index") or 0), name=str(gpu.get("name") or ""))
        for gpu in reported
        if gpu.get("id")
    )
    return tuple(sorted(cards, key=lambda card: (card.index, card.id)))


def fits(wish: GpuWish, gpu_ids: Sequence[str], cards: Sequence[Card]) -> bool:
    """Whether these cards are what is wished for, whoever else wants them."""
    if not wish.device_ids:
        return len(gpu_ids) == wish.count
    known = {name: card.id for card in cards for name in (str(card.index), card.id)}
    return {known.get(name, name) for name in wish.device_ids} == set(gpu_ids)


def choose(
    wish: GpuWish,
    cards: Sequence[Card],
    held: Iterable[Held],
    *,
    host_name: str,
    before: Iterable[str] = (),
) -> tuple[str, ...]:
    """The cards to take, those it had `before` first; refuses with the holder's name."""
    holders = _holders(held, wish)
    if wish.device_ids:
        return _by_id(wish, cards, holders, host_name)
    return _by_count(wish, cards, holders, host_name, frozenset(before))


def _holders(held: Iterable[Held], wish: GpuWish) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for hold in held:
        if not (wish.shared and hold.shared):
            found.setdefault(hold.gpu, []).append(hold.workspace)
    return found


def _by_id(
    wish: GpuWish, cards: Sequence[Card], holders: dict[str, list[str]], host_name: str
) -> tuple[str, ...]:
    known = {name: card for card in cards for name in (str(card.index), card.id)}
    chosen = set()
    for wanted in wish.device_ids:
        card = known.get(wanted)
        if card is None:
            raise Invalid.field("gpus.device_ids", f"The host {host_name} has no GPU {wanted}.")
        if card.id in holders:
            raise Invalid.field(
                "gpus.device_ids",
                f"{card} of the host {host_name} is held by {_names(holders[card.id])}. "
                "Stop that first, or ask for another one.",
            )
        chosen.add(card.id)
    return tuple(sorted(chosen))


def _by_count(
    wish: GpuWish,
    cards: Sequence[Card],
    holders: dict[str, list[str]],
    host_name: str,
    before: frozenset[str],
) -> tuple[str, ...]:
    if wish.count > len(cards):
        raise Invalid.field(
            "gpus.count",
            f"The host {host_name} has {counted(len(cards), 'GPU')}, fewer than {wish.count}.",
        )
    free = [card for card in cards if card.id not in holders]
    if wish.count > len(free):
        taken = "; ".join(
            f"{card} is held by {_names(holders[card.id])}" for card in cards if card.id in holders
        )
        raise Invalid.field(
            "gpus.count",
            f"The host {host_name} has {len(free)} of {counted(len(cards), 'GPU')} free: {taken}. "
            "Stop one of them first.",
        )
    free.sort(key=lambda card: (card.id not in before, card.index, card.id))
    return tuple(sorted(card.id for card in free[: wish.count]))


def _names(workspaces: list[str]) -> str:
    names = sorted(set(workspaces))
    return f"the workspace{'s' if len(names) > 1 else ''} {', '.join(names)}"
