"""English words that a request has around what it asks for.

A search index tells how frequent a word is by counting it. `tool_ranking` counts in names only, where these words do
not occur, though they are in every request; so they are known from here.

Invariant: closed classes (pronouns, prepositions, conjunctions, auxiliaries, adverbs of degree and time) and the verbs
and adjectives of asking; no word that names what a tool does.
"""

from __future__ import annotations

_TEXT = """
a an the this that these those such same other another each every any some all both few many much more most less least
none no not nor only own too very so as than one two first next last bit lot kind sort thing things
i me my mine myself we us our ours you your yours he him his she her it its they them their
something anything everything someone anyone everyone who whom whose which what when where why how whether while
about above across after against along among around at before behind below beneath beside between beyond by during
except for from in inside into near of off on onto out outside over past per regarding through throughout to toward
towards under up upon via with within without
and or but yet also else even if then though although because since until unless otherwise however therefore thus
ever never again once now here there just still already soon later always often sometimes instead perhaps maybe quite
rather almost really exactly especially finally currently quickly actually
am is are was were be been being do does did doing done have has had having can could may might must shall should will
would ought
d ll m re s t ve don doesn didn isn aren wasn weren won wouldn couldn shouldn hasn haven hadn let lets
want wants wanted need needs needed like likes please help helps give gives given tell know see look looking try trying
make makes making get gets got getting take takes going go goes come sure think feel interested interest love hope wish
wonder wondering able new good best better great nice perfect quick current actual specific
"""
FUNCTION_WORDS = frozenset(_TEXT.split())
