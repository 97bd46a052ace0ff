"""What the verdict of a row that holds does not show."""

CAVEATS: dict[str, str] = {}
