"""What the verdict of a row that holds does not show."""

CAVEATS: dict[str, str] = {
    "AC06-O1": "The source gains 8 to 11 %; here the conventional case carries more, and the gain is 5 to 8 %",
    "AC06-O4": (
        "The order holds over four hundred runs with a difference of 1 to 2 %; a hundred do not tell for maxd 700 ms "
        "(one-sided p 0.07)"
    ),
    "AC06-T2-4-a0.5-delay": (
        "It is 18 % longer than printed, where the tolerance is 20 %. Over four hundred runs it is 0.763 s, and "
        "0.761 s where all flows begin at one instant; of those the first twenty have 0.782 s, which misses"
    ),
    "AC06-O10": "Hardly a packet is dropped in either case",
    "AC06-T2-1-a1-delay": "It holds by a hair: 19 % shorter than printed, where the tolerance is 20 %",
    "AC06-O2": (
        "Three configurations are 26 to 41 % less, alpha 0 with minth 20 is 21 %, where the source has 34. As "
        "AC06-T2-4-a0.2-delay"
    ),
}
