"""Published pickles, of which nothing but plain data is loaded: a pickle could name any function of the machine.

The invariant: no class and no function is looked up, but for `datetime.timedelta`, which is data.
"""

from __future__ import annotations

import pickle
from datetime import timedelta
from typing import IO, Any


class _PlainData(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        # Durations are the only objects in the published files.
        if (module, name) == ("datetime", "timedelta"):
            return timedelta
        raise pickle.UnpicklingError(
            f"it wants {module}.{name}, which is not loaded; expected plain data and timedelta"
        )


def load_plain(raw: IO[bytes]) -> Any:
    """The plain data of a pickle.

    Raises:
        ValueError: it is cut short, or names anything that is not plain data; says what.
    """
    try:
        return _PlainData(raw).load()
    except (
        pickle.UnpicklingError,
        EOFError,
        AttributeError,
        ImportError,
        IndexError,
        KeyError,
        TypeError,
        ValueError,
    ) as error:
        raise ValueError(f"the pickle is not loaded ({error or 'it is cut short'})") from None
