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
    "CR04-22": (
        "It holds over both loads together: under the medium one strict priority is nowhere more than 10 % behind the "
        "best scheme and PF-RP up to 18 %; under the heavy one they are 73 and 5 % behind"
    ),
    "CR04-24": "A third of the printed size, under the heavy load",
    "CR04-28": "Under the heavy load it holds of the mean of both cases; among users of equal SNR the gain falls",
}
