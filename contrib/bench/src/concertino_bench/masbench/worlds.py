"""The names that generated questions are about, and which name is what kind of thing.

A *world* has four layers from the largest thing to the smallest. A *category* names a layer, an *item* belongs to one.
An item owns items of the next layer, so "each Tern Island's Eider Colony" is a plain quantity, and "each Tern Island's
Colony" is a *total* over the colonies that the text gives Tern Island.

The invariant: no name occurs twice in the catalogue, none holds a digit or a mark that ends a sentence or opens with an
article, and no item holds an apostrophe, so that "X's Y" is cut in one way only.
"""

from __future__ import annotations

from concertino_toy.problems import name_world

WORLDS = (
    name_world(
        Island="Tern Island, Gannet Rock, Skerry Vore, Otter Holm, Far Lunga",
        Colony="Eider Colony, Puffin Colony, Seal Rookery, Shag Ledge, Petrel Burrow, Fulmar Terrace",
        Nest="Grass Nest, Pebble Nest, Driftwood Nest, Crevice Nest, Moss Nest",
        Egg="Speckled Egg, Olive Egg, Ivory Egg, Russet Egg, Slate Egg, Cream Egg",
    ),
    name_world(
        Theatre="Lantern Playhouse, Crown Theatre, Widow Tamsin's, Quayside Stage, Gilded Arch",
        Company="Comedy Company, Mime Troupe, Opera Chorus, Puppet Guild, Dance Ensemble, Masque Players",
        Wardrobe="Velvet Rack, Hat Press, Cloak Closet, Mask Drawer, Shoe Locker",
        Costume="Harlequin Suit, Feather Boa, Paper Crown, Satin Glove, Buckle Shoe, Lace Collar",
    ),
    name_world(
        Observatory="Mount Cedar Observatory, Salt Flat Station, Polar Dome, Ridge Eleven Dome, Old Meridian House",
        Telescope="Solar Refractor, Radio Dish, Mirror Array, Comet Seeker, Survey Camera, Zenith Tube",
        Archive="Glass Plate Archive, Tape Vault, Logbook Shelf, Chart Cabinet, Film Safe",
        Record="Eclipse Record, Nova Record, Meteor Record, Aurora Record, Transit Record, Halo Record",
    ),
    name_world(
        Bakery="Mill Street Bakery, Corner Crust, Baker Odile's, Three Ovens, Harvest Loaf House",
        Oven="Stone Oven, Deck Oven, Clay Oven, Tunnel Oven, Rye Oven, Pastry Oven",
        Tray="Copper Tray, Slatted Tray, Deep Tray, Round Tray, Linen Tray",
        Pastry="Almond Twist, Poppy Roll, Fig Slice, Honey Bun, Cheese Straw, Plum Pocket",
    ),
    name_world(
        Railway="Northern Loop Line, Valley Railway, Summit Cog Line, Coast Tramway, Harbour Spur",
        Depot="Engine Depot, Carriage Depot, Wagon Depot, Signal Depot, Permanent Way Depot, Snowplough Depot",
        Crate="Iron Crate, Wicker Crate, Sealed Crate, Tall Crate, Flat Crate",
        Tool="Track Gauge, Oil Can, Hand Lamp, Coupling Hook, Wheel Key, Spike Maul",
    ),
    name_world(
        Museum="Museum of Clocks, Museum of Salt, Museum of Rivers, Museum of Kites, Museum of Ink",
        Gallery="East Gallery, Round Gallery, Crypt Gallery, Glass Gallery, Attic Gallery, Bridge Gallery",
        Showcase="Oak Showcase, Corner Showcase, Table Showcase, Wall Showcase, Hanging Showcase",
        Exhibit="Brass Sundial, Wax Seal, Bone Flute, Clay Tablet, Silver Thimble, Amber Bead",
    ),
    name_world(
        Reef="Lantern Reef, Broken Anchor Reef, Moray Reef, Whale Shoulder, Twin Cays Reef",
        Grotto="Blue Grotto, Sponge Grotto, Echo Grotto, Kelp Grotto, Turtle Grotto, Coral Grotto",
        Crevice="Narrow Crevice, Sandy Crevice, Forked Crevice, Upper Crevice, Hidden Crevice",
        Creature="Banded Shrimp, Feather Star, Pistol Crab, Sea Slug, Dwarf Octopus, Pipe Fish",
    ),
    name_world(
        Library="Abbey Library, Canal Library, Poplar Library, Nomad Library, Weaver Hall Library",
        Floor="Ground Floor, Mezzanine Floor, Gallery Floor, Cellar Floor, Tower Floor, Annex Floor",
        Bookcase="Ladder Bookcase, Folding Bookcase, Locked Bookcase, Revolving Bookcase, Low Bookcase",
        Volume="Herbal Volume, Atlas Volume, Psalter Volume, Ledger Volume, Bestiary Volume, Almanac Volume",
    ),
)
"""The worlds that questions are drawn from."""
