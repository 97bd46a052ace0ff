"""Classes of size of the transfers of figures 14 and 15."""

from ackclock.paper.measure import Measure, latency

SHORT = latency(1, 15_000)  # bytes
SIZES: dict[str, Measure] = {
    "≤ 5 KB": latency(1, 5_000),
    "≤ 15 KB": latency(5_001, 15_000),
    "≤ 50 KB": latency(15_001, 50_000),
    "≤ 200 KB": latency(50_001, 200_000),
    "1 MB": latency(200_001, 1_000_000),
}
BELOW_15_KB = ("≤ 5 KB", "≤ 15 KB")
ABOVE_15_KB = ("≤ 50 KB", "≤ 200 KB")
WEB_SIZES = BELOW_15_KB + ABOVE_15_KB
