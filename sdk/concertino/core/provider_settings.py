"""The settings of one provider: its table `[providers.<name>]` of `concertino.toml` or of a pool file.

Invariant: a provider reads its own table and no other, and every error says in which file and table the key stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from concertino.core.documents import check_keys
from concertino.core.errors import UsageError


class ProviderSettings(Mapping[str, Any]):
    """What was set for a provider; hooks that take an argument `settings` are given it. Read-only.

    Args:
        values: plain data, by key.
        where: file and table, as errors name them.
        folder: where paths in it count from; by default the working directory.
    """

    def __init__(self, values: Mapping[str, Any] | None = None, *, where: str = "", folder: Path | None = None) -> None:
        self._values = dict(values or {})
        self.where = where or "settings"
        self.folder = folder or Path()

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"ProviderSettings({self._values!r}, where={self.where!r})"

    def check(self, known: Iterable[str]) -> None:
        """Refuse keys that the provider does not know.

        Raises:
            UsageError: names the key and the one that was probably meant.
        """
        check_keys(self.where, self._values, known, UsageError)

    def path(self, key: str) -> Path | None:
        """A path, from the folder of its file; `None` where the key is not set.

        Raises:
            UsageError: the value is not a text.
        """
        value = self._values.get(key)
        if value is None:
            return None
        if not isinstance(value, str) or not value:
            raise UsageError(f"{self.where}: {key} = {value!r}; expected a path in quotes")
        return self.folder / Path(value).expanduser()
