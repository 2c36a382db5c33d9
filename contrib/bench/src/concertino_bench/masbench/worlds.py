"""The names that generated questions are about, and which name is what kind of thing.

A *world* has four layers from the largest thing to the smallest. A *category* names a layer, an *item* belongs to one.
An item owns items of the next layer, so "each Tern Island's Eider Colony" is a plain quantity, and "each Tern Island's
Colony" is a *total* over the colonies that the text gives Tern Island.

The invariant: no name occurs twice in the catalogue, none holds a digit or a mark that ends a sentence or opens with an
article, and no item holds an apostrophe, so that "X's Y" is cut in one way only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple


class Quantity(NamedTuple):
    """How many `item` each `owner` has. A result that is handed over has no owner: `[answer2]`."""

    owner: str
    item: str

    def __str__(self) -> str:
        return f"{self.owner}'s {self.item}" if self.owner else self.item


@dataclass(frozen=True)
class World:
    """Four categories, top layer first, each with its items."""

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
        """The layer of an item, 0 to 3; KeyError for a name that is none."""
        for layer, items in enumerate(self.layers.values()):
            if item in items:
                return layer
        raise KeyError(item)


def _world(**layers: str) -> World:
    return World({category.replace("_", " "): tuple(items.split(", ")) for category, items in layers.items()})


WORLDS = (
    _world(
        Island="Tern Island, Gannet Rock, Skerry Vore, Otter Holm, Far Lunga",
        Colony="Eider Colony, Puffin Colony, Seal Rookery, Shag Ledge, Petrel Burrow, Fulmar Terrace",
        Nest="Grass Nest, Pebble Nest, Driftwood Nest, Crevice Nest, Moss Nest",
        Egg="Speckled Egg, Olive Egg, Ivory Egg, Russet Egg, Slate Egg, Cream Egg",
    ),
    _world(
        Theatre="Lantern Playhouse, Crown Theatre, Widow Tamsin's, Quayside Stage, Gilded Arch",
        Company="Comedy Company, Mime Troupe, Opera Chorus, Puppet Guild, Dance Ensemble, Masque Players",
        Wardrobe="Velvet Rack, Hat Press, Cloak Closet, Mask Drawer, Shoe Locker",
        Costume="Harlequin Suit, Feather Boa, Paper Crown, Satin Glove, Buckle Shoe, Lace Collar",
    ),
    _world(
        Observatory="Mount Cedar Observatory, Salt Flat Station, Polar Dome, Ridge Eleven Dome, Old Meridian House",
        Telescope="Solar Refractor, Radio Dish, Mirror Array, Comet Seeker, Survey Camera, Zenith Tube",
        Archive="Glass Plate Archive, Tape Vault, Logbook Shelf, Chart Cabinet, Film Safe",
        Record="Eclipse Record, Nova Record, Meteor Record, Aurora Record, Transit Record, Halo Record",
    ),
    _world(
        Bakery="Mill Street Bakery, Corner Crust, Baker Odile's, Three Ovens, Harvest Loaf House",
        Oven="Stone Oven, Deck Oven, Clay Oven, Tunnel Oven, Rye Oven, Pastry Oven",
        Tray="Copper Tray, Slatted Tray, Deep Tray, Round Tray, Linen Tray",
        Pastry="Almond Twist, Poppy Roll, Fig Slice, Honey Bun, Cheese Straw, Plum Pocket",
    ),
    _world(
        Railway="Northern Loop Line, Valley Railway, Summit Cog Line, Coast Tramway, Harbour Spur",
        Depot="Engine Depot, Carriage Depot, Wagon Depot, Signal Depot, Permanent Way Depot, Snowplough Depot",
        Crate="Iron Crate, Wicker Crate, Sealed Crate, Tall Crate, Flat Crate",
        Tool="Track Gauge, Oil Can, Hand Lamp, Coupling Hook, Wheel Key, Spike Maul",
    ),
    _world(
        Museum="Museum of Clocks, Museum of Salt, Museum of Rivers, Museum of Kites, Museum of Ink",
        Gallery="East Gallery, Round Gallery, Crypt Gallery, Glass Gallery, Attic Gallery, Bridge Gallery",
        Showcase="Oak Showcase, Corner Showcase, Table Showcase, Wall Showcase, Hanging Showcase",
        Exhibit="Brass Sundial, Wax Seal, Bone Flute, Clay Tablet, Silver Thimble, Amber Bead",
    ),
    _world(
        Reef="Lantern Reef, Broken Anchor Reef, Moray Reef, Whale Shoulder, Twin Cays Reef",
        Grotto="Blue Grotto, Sponge Grotto, Echo Grotto, Kelp Grotto, Turtle Grotto, Coral Grotto",
        Crevice="Narrow Crevice, Sandy Crevice, Forked Crevice, Upper Crevice, Hidden Crevice",
        Creature="Banded Shrimp, Feather Star, Pistol Crab, Sea Slug, Dwarf Octopus, Pipe Fish",
    ),
    _world(
        Library="Abbey Library, Canal Library, Poplar Library, Nomad Library, Weaver Hall Library",
        Floor="Ground Floor, Mezzanine Floor, Gallery Floor, Cellar Floor, Tower Floor, Annex Floor",
        Bookcase="Ladder Bookcase, Folding Bookcase, Locked Bookcase, Revolving Bookcase, Low Bookcase",
        Volume="Herbal Volume, Atlas Volume, Psalter Volume, Ledger Volume, Bestiary Volume, Almanac Volume",
    ),
)
"""The worlds that questions are drawn from."""
