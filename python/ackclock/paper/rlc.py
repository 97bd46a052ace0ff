"""The radio link control over which documents that have none of their own are judged: that of the preset `ac06`."""

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
    """A download by the buffer of the link layer, packets: the point of each regulator."""
    return {
        buffer: [SCENARIO.format(buffer=buffer, regulator=regulator) for regulator in regulators] for buffer in BUFFERS
    }
