"""What the verdict of a row that holds does not show."""

CAVEATS: dict[str, str] = {
    "CR04-05": (
        "The order holds and `slightly` does not: drop-tail has a fifth more with SACK than with Reno, and the others, "
        "which lose next to nothing, have the same with both"
    ),
}
