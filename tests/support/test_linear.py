"""`assert_linear`: whom it lets pass, and whom not."""

import pytest
from linear import assert_linear

TEXT = "x" * 12_000


def test_a_reader_that_looks_at_every_sign_a_few_times_passes() -> None:
    assert_linear(lambda: [TEXT.translate({}) for _ in range(20)], len(TEXT))


def test_a_reader_that_begins_anew_at_every_sign_fails() -> None:
    with pytest.raises(AssertionError, match=r"12000 signs took \[\d+, \d+, \d+\] plain passes, more than 1200"):
        assert_linear(lambda: [sign for start in range(len(TEXT)) for sign in TEXT[start:]], len(TEXT))
