"""What the verdict of a row that holds does not show."""

CAVEATS: dict[str, str] = {
    "CR04-05": (
        "The order holds and `slightly` does not: drop-tail has a fifth more with SACK than with Reno, and the "
        "others, which lose next to nothing, have the same with both"
    ),
    "CR04-17": (
        "The order holds below 15 KB with a difference of less than 2 %: the one user with pages has few long flows "
        "that short ones could pass. Where all users have pages it is 6 to 8 %"
    ),
    "CR04-20": "PF-RP holds with a tenth; PF/SFP with less than 2 %, as CR04-17",
}
