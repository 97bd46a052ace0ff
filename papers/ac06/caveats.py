"""What the verdict of a row that holds does not show."""

CAVEATS: dict[str, str] = {
    "AC06-O1": "The source gains 8 to 11 %; here the conventional case carries more, and the gain is 4 to 8 %",
    "AC06-O4": "The order holds over a hundred runs with a difference of 1 to 2 %; twenty runs do not tell",
    "AC06-O10": "Hardly a packet is dropped in either case",
}
