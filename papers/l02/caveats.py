"""What the verdict of a row that holds does not show."""

CAVEATS: dict[str, str] = {
    "L02-T3-2": (
        "It holds by a hair: 20.3 % where the bound is 20, and 20.2 % over forty runs. With a guard against a second "
        "halving in a window, which ns-2 has had since July 2003, it is 19.1 %"
    ),
    "L02-T8-1": (
        "The order holds and the size does not: the source has 53 % and speaks of time-outs; here no timer expires"
    ),
    "L02-F20-3": ("The increase is over the download that is not split; it is below the 11 % that the radio repeats"),
    "L02-T6-1": "The increase is two thirds of the printed one",
    "L02-T11-2": ("The order holds with half of the printed size, and the spread of the runs is as large as the gain"),
    "L02-T11-6": ("The order holds with two thirds of the printed size"),
}
