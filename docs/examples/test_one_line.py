"""The strategy against the contract of every strategy."""

from concertino.testing import StrategyConformance
from one_line import OneLine


class TestOneLine(StrategyConformance):
    strategy = OneLine()
