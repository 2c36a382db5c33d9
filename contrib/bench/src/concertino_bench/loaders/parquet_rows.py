"""Rows of Parquet files, a thousand at a time.

The invariant: a row is JSON data, as from a text file: times are texts, bytes are texts in base64, and a map is an
object. A Parquet file has no lines; a row's number stands for one.
"""

from __future__ import annotations

import base64
import datetime
import decimal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from concertino_bench.tasks.task import DataError

_ROWS = 1024


def parquet_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of a file, each with its number from 1.

    Raises:
        DataError: the file cannot be read, or pyarrow is not installed.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError:
        raise DataError(
            f"{path}: reading Parquet needs pyarrow; expected the extra 'parquet': "
            "pip install 'concertino-bench[parquet]'"
        ) from None
    number = 0
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            # Most files hold only texts, numbers and lists, which need no second walk.
            plain = _json_types(pyarrow, file.schema_arrow)
            for batch in file.iter_batches(batch_size=_ROWS):
                for row in batch.to_pylist():
                    number += 1
                    yield number, row if plain else _json_data(row)
    except pyarrow.ArrowException as error:
        raise DataError(f"{path}: no Parquet file that can be read ({error}); copy or download it again") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}; check the file and its rights") from error


def _json_types(pyarrow: Any, fields: Any) -> bool:
    """Whether Python's values of these fields are JSON data."""
    types = pyarrow.types

    def fits(kind: Any) -> bool:
        if types.is_struct(kind):
            return all(fits(kind.field(at).type) for at in range(kind.num_fields))
        if types.is_list(kind) or types.is_large_list(kind):
            return fits(kind.value_type)
        plain = (types.is_string, types.is_large_string, types.is_integer, types.is_boolean, types.is_null)
        # Not floats: NaN is no JSON.
        return any(each(kind) for each in plain)

    return all(fits(field.type) for field in fields)


def _json_data(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _json_data(each) for key, each in value.items()}
    if isinstance(value, list):
        # A map comes as pairs, which a list never holds otherwise.
        if value and all(isinstance(each, tuple) for each in value):
            return {str(key): _json_data(each) for key, each in value}
        return [_json_data(each) for each in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and value != value:
        # What pandas writes for a missing number.
        return None
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, decimal.Decimal | datetime.timedelta):
        return str(value)
    return value
