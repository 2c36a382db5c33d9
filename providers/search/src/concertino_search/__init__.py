"""concertino-search."""

from ._errors import CorpusError, IndexDamaged
from ._index import *
from ._tools import *
