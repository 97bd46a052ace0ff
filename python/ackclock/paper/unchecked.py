"""Reasons why a row is shown and not judged. A test fails when something exists that a reason calls missing."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Missing:
    """Something that ackclock lacks.

    Attributes:
        what: Where the reference would list it: among the keys of a scenario, the results of a run, or the components.
        pattern: Regular expression for its name.
        why: Remark for the reader.
    """

    what: Literal["key", "result", "component"]
    pattern: str
    why: str

    def __str__(self) -> str:
        return f"missing {self.what}: {self.why}"


@dataclass(frozen=True)
class InDocument:
    """A fault of the document.

    Attributes:
        fault: What is wrong with the statement.
        why: Remark for the reader.
    """

    fault: Literal["illegible", "contradictory", "no number"]
    why: str

    def __str__(self) -> str:
        return f"{self.fault}: {self.why}"


Reason = Missing | InDocument
