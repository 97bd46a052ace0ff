"""The rows of an expected.csv: printed values of a document, with tolerances."""

import csv
import io
from dataclasses import dataclass, fields
from pathlib import Path

from ackclock.files import read_text


@dataclass(frozen=True)
class Row:
    """One quantitative statement.

    Attributes:
        id: Name of the statement, unique over all documents.
        source: Label of the document.
        config: Its setting.
        metric: Measured or computed quantity.
        value: Printed value (see `tolerance`).
        unit: Unit of `value`.
        tolerance: See `tolerance`.
        kind: `computed`, `sim`, `computed/sim`, `measured` (in the field) or `stated`.
        note: Remark.
        neutral: Value of a row that prints a comparison where nothing happens (see `effect`); empty for other rows.
    """

    id: str
    source: str
    config: str
    metric: str
    value: str
    unit: str
    tolerance: str
    kind: str
    note: str
    neutral: str = ""


class Expected(dict[str, Row]):
    """The rows of a document by id, in the file's order."""

    def number(self, row: str) -> float:
        """The printed number of a row."""
        return float(self[row].value)


def read(path: Path) -> Expected:
    """Read an expected.csv.

    Raises:
        OSError: naming the file, if it cannot be read.
        ValueError: naming the file, if it is not UTF-8; naming file and line, if a column is missing or an id is
            repeated.
    """
    rows = Expected()
    reader = csv.DictReader(io.StringIO(read_text(path)))
    columns = [field.name for field in fields(Row)]
    if reader.fieldnames != columns:
        raise ValueError(f"{path}:1: the columns must be {','.join(columns)}")
    for record in reader:
        if None in record or None in record.values():
            raise ValueError(f"{path}:{reader.line_num}: {len(columns)} fields are needed")
        row = Row(**record)
        if row.id in rows:
            raise ValueError(f"{path}:{reader.line_num}: id {row.id} is repeated")
        rows[row.id] = row
    return rows
