"""What was tried for the rows that are not reproduced."""

TRIED: dict[str, str] = {}
