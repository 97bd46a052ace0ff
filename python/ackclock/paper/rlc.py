"""The radio link control of the preset `ac06`, for documents that specify none."""

from collections.abc import Mapping

BUFFERS = (10, 20, 40)  # packets
SCENARIO = """version = 1
preset = "ac06"
duration = "60s"
runs = 20

[edge]
buffer = "{buffer}p"
regulator = "{regulator}"

[[flow]]
sender = "reno"
"""


def by_buffer(*regulators: str) -> Mapping[int, list[str]]:
    """Points of a download for each regulator, by buffer of the link layer in packets."""
    return {
        buffer: [SCENARIO.format(buffer=buffer, regulator=regulator) for regulator in regulators] for buffer in BUFFERS
    }
