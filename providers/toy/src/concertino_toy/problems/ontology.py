"""What kind of thing each name is: the catalogue of worlds, and the members behind a category.

A *world* has four layers, a *category* names a layer, an *item* belongs to one. An item owns items of
the next layer, so "each Riverside High's Film Studio" is a plain quantity, while "each Riverside High's
Room" is a *total*: the sum over the rooms that the text gives Riverside High. Two layers apart, the
total multiplies: rooms × tables in each.

Texts from elsewhere use names that no world lists. There a name is *taken* for a category when it is
counted but no sentence defines it and it owns nothing; its layer is the one below its deepest owner.
That is a guess, and it is only made for owners outside the catalogue: inside, what no sentence mentions
is exactly 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple


class Quantity(NamedTuple):
    """How many `item` each `owner` has. `[answer2]`, a result used again, has no owner."""

    owner: str
    item: str

    def __str__(self) -> str:
        return f"{self.owner}'s {self.item}" if self.owner else self.item


@dataclass(frozen=True)
class NameWorld:
    """Four categories from the top layer down, each with its items."""

    layers: Mapping[str, tuple[str, ...]]

    @property
    def categories(self) -> tuple[str, ...]:
        """The names of the layers, top first."""
        return tuple(self.layers)

    def items(self, layer: int) -> tuple[str, ...]:
        """The items of a layer, 0 to 3."""
        return self.layers[self.categories[layer]]

    @cached_property
    def owned(self) -> tuple[tuple[str, tuple[Quantity, ...]], ...]:
        """Every owner, top layer first, with all quantities that it can have."""
        return tuple(
            (owner, tuple(Quantity(owner, item) for item in self.items(layer + 1)))
            for layer in range(3)
            for owner in self.items(layer)
        )

    def layer_of(self, item: str) -> int:
        """The layer of an item, 0 to 3; KeyError for a name that is no item."""
        for layer, items in enumerate(self.layers.values()):
            if item in items:
                return layer
        raise KeyError(item)


def name_world(**layers: str) -> NameWorld:
    """A world of categories, top layer first, and of their items, separated by commas."""
    return NameWorld({category.replace("_", " "): tuple(items.split(", ")) for category, items in layers.items()})


WORLDS = (
    name_world(
        School="Riverside High, Hillcrest Academy, Oakmont College, Harbour Grammar, St Ives School",
        Room="Film Studio, Chemistry Lab, Music Hall, Map Library, Pottery Workshop, Reading Nook",
        Furniture="Corner Desk, Display Cabinet, Folding Table, Coat Stand, Tall Shelf",
        Supply="Wax Crayon, Steel Ruler, Graph Pad, Glue Pot, Ink Bottle, Paper Clip",
    ),
    name_world(
        Port="Port Alder, Grey Haven, Cape Linnet, Marrow Bay, Whistler's Quay",
        Ship="Cable Layer, Pilot Cutter, Grain Barge, Night Ferry, Research Trawler, Harbour Tug",
        Container="Blue Crate, Oak Barrel, Mail Sack, Cold Box, Tin Trunk",
        Cargo="Copper Coil, Tea Brick, Clock Movement, Cork Float, Salt Block, Silk Roll",
    ),
    name_world(
        Garden="Fernhill Garden, Moss Court, Linden Terrace, Orchid House, Walled Garden of Esk",
        Bed="Herb Spiral, Rose Border, Bog Bed, Alpine Trough, Cutting Patch, Shade Corner",
        Plant="Silver Thyme, Sea Holly, Globe Thistle, Lady Fern, Bishop's Hat",
        Visitor="Mason Bee, Tiger Moth, Garden Snail, Hover Fly, Ground Beetle, Harvest Spider",
    ),
    name_world(
        Workshop="Vale Foundry, Bright & Daughters, Mill Lane Works, Station Forge, Kite Yard",
        Bench="Lathe Bench, Drill Press, Engraving Stand, Soldering Post, Paint Booth",
        Toolbox="Red Toolbox, Canvas Roll, Fitter's Case, Bench Drawer, Magnet Rail",
        Part="Brass Hinge, Lock Washer, Spring Clip, Ball Bearing, Rivet Pin, Hex Bolt",
    ),
)
"""The worlds that the writer draws from and the reader knows."""

_CATEGORY_OF = {item: category for world in WORLDS for category, items in world.layers.items() for item in items}
_NAMES = _CATEGORY_OF.keys() | {category for world in WORLDS for category in world.categories}
_LAYER = {category: layer for world in WORLDS for layer, category in enumerate(world.categories)}


def split_possessive(text: str) -> Quantity | None:
    """Owner and item of "X's Y", cut where a known item is left, else at the last mark; None without one."""
    cuts = [match.start() for match in re.finditer("'s (?=.)", text) if match.start()]
    if not cuts:
        return None
    # A name may hold a possessive itself, such as Bishop's Hat.
    cut = next((at for at in cuts if text[at + 3 :] in _NAMES), cuts[-1])
    return Quantity(text[:cut], text[cut + 3 :])


@dataclass(frozen=True)
class Total:
    """A category's total, as sums of products: one or two quantities to multiply in each part."""

    parts: tuple[tuple[Quantity, ...], ...]


class Ontology:
    """Tells totals from plain quantities in one problem."""

    def __init__(self, defined: Iterable[Quantity], counted: Iterable[Quantity]) -> None:
        """`defined` quantities stand left of an "equals"; `counted` ones are used or asked for."""
        self._items: dict[str, list[str]] = {}
        for owner, item in defined:
            self._items.setdefault(owner, []).append(item)
        self._guess = _Guess(self._items, list(counted))

    def total(self, quantity: Quantity) -> Total | None:
        """The total behind a quantity that no sentence defines, None if its item is no category."""
        owner, item = quantity
        if item in _LAYER:
            return Total(tuple(self._known_parts(owner, item)))
        if owner in _CATEGORY_OF or item in _CATEGORY_OF or item not in self._guess.categories:
            return None
        return Total(tuple(self._guess.parts(owner, item)))

    def _known_parts(self, owner: str, category: str) -> Iterable[tuple[Quantity, ...]]:
        for item in self._items.get(owner, ()):
            kind = _CATEGORY_OF.get(item)
            if kind == category:
                yield (Quantity(owner, item),)
            elif kind is not None and _LAYER[kind] < _LAYER[category]:
                yield (Quantity(owner, item), Quantity(item, category))


class _Guess:
    """The guess for names outside the catalogue: which are categories, and on which layer."""

    def __init__(self, items: Mapping[str, list[str]], counted: list[Quantity]) -> None:
        self._items = items
        self._counted = counted
        named = {item for owned in items.values() for item in owned}
        owners: Set[str] = items.keys() | {owner for owner, _ in counted}
        self.categories = {item for _, item in counted} - named - owners
        self._layers = self._item_layers()

    def parts(self, owner: str, category: str) -> Iterable[tuple[Quantity, ...]]:
        """The parts of `owner`'s total: its items, or its items times their own totals."""
        world, layer = self._layers.get(owner, (owner, 0))
        places = [self._layers.get(other, (other, 0)) for other, item in self._counted if item == category]
        deepest = max([own for root, own in places if root == world], default=layer)
        for item in self._items.get(owner, ()):
            part = Quantity(owner, item)
            yield (part, Quantity(item, category)) if layer < deepest else (part,)

    def _item_layers(self) -> dict[str, tuple[str, int]]:
        """(connected group, layer) of every name, walking owner → item and back."""
        neighbours: dict[str, list[tuple[str, int]]] = {}
        pairs = [(owner, item) for owner, owned in self._items.items() for item in owned]
        pairs += [(owner, item) for owner, item in self._counted if item not in self.categories]
        for owner, item in pairs:
            neighbours.setdefault(owner, []).append((item, 1))
            neighbours.setdefault(item, []).append((owner, -1))
        layers: dict[str, tuple[str, int]] = {}
        for root in neighbours:
            if root in layers:
                continue
            layers[root] = (root, 0)
            waiting = [root]
            while waiting:
                name = waiting.pop()
                for other, offset in neighbours[name]:
                    if other not in layers:
                        layers[other] = (root, layers[name][1] + offset)
                        waiting.append(other)
        return layers
