"""Chapters 4 to 6, simulated: TCP over the power-controlled channel, compared with its analysis."""

from collections.abc import Iterable, Iterator
from itertools import product
from math import sqrt
from pathlib import Path

from ackclock.paper import Claim, Figure, Runs, Table, point
from ackclock.paper.expected import Expected
from ackclock.paper.measure import Run
from ackclock.papers.m05.analysis import STEPS, delay, fast_retransmit

SCENARIO = Path(__file__).parent / "scenarios" / "uplink.toml"
FRAME = 960  # bytes
RATE = 0.9 * 384_000  # bit/s: one frame in ten is damaged
SCHEMES = ((1, 1, 1, 1, 1), (1, 2, 3))
SMALL = {"flow.packet": f"{FRAME}B", "flow.max_window": "8p"}
FRAMES = (1, 2, 3, 5)
FULL = 120  # uploads over one channel without ARQ
# The bandwidth-delay product in packets of one and two frames: 45 frames/s for 0.2 s, the packet's own slots and the
# mean of its repetitions (0.32 and 0.53 TTI).
PRODUCT = {1: 45 * (0.2 + 1.32 * 0.02), 2: 45 / 2 * (0.2 + 2.53 * 0.02)}
WINDOW = 2  # products
# Frames of a packet, buffer in products, and the order of delivery; the first is judged.
READINGS = tuple(product(PRODUCT, (1.0, 1.5, 2.0), ("out-of-sequence", "in-sequence")))
CHANNELS = tuple(product(STEPS, SCHEMES))

CONDITIONS = (
    "Simulated uploads: packets of 960 bytes are one frame; the terminal sends Reno as in the preset m05-uplink, "
    "whose timer has practically no lower limit (1 ms); the channel hands packets on as they are complete."
)
TRIED: dict[str, str] = {
    "M05-S45-4": (
        "The worst of six: three steps, schemes (1, 1, 1, 1, 1) and (1, 2, 3). Two things take from it, both counted "
        "in the table below. First the buffer: a window of two products fills one product of buffer to the last "
        "place, and each frame that is sent again keeps one packet more waiting, so that it overflows, often by "
        "several packets of a window, for which Reno waits for its timer. With a buffer of one and a half products "
        "next to nothing overflows; two change nothing more. Then the order: packets of one frame that are overtaken "
        "by three call forth fast retransmits for nothing, somewhat more often than P_FR of table 4.2 says (both "
        "counts stand in the note). Each halves a window that needs 150 packets to grow from one product to two; "
        "with P_FR of 0.63 and 0.79 % the next one comes after 159 and 127, so the window falls below a product and "
        "the channel idles, whatever the buffer. What the source says holds where its own P_FR is next to nothing: "
        "in sequence, and with packets of two frames in either order, the goodput is 0.99 and more from one and a "
        "half products on, with every step and scheme"
    ),
}
CAVEATS: dict[str, str] = {}


def points() -> Iterable[str]:
    """The scenario texts to run."""
    for reading, (step, scheme) in product(READINGS, CHANNELS):
        yield _limited(*reading, step, scheme)
    for frames, arq in product(FRAMES, ("nak", "none")):
        yield _of_size(frames, arq)
    for frames in FRAMES:
        yield _full(frames)


def claims(runs: Runs, expected: Expected) -> dict[str, Claim]:
    """Our value of every row that is simulated."""
    return {"M05-S45-4": _bandwidth_limited(runs), "M05-O4": _no_arq(runs)}


def figures(runs: Runs) -> Iterator[Figure]:
    """Figures of simulated runs."""
    return iter(())


def tables(runs: Runs, expected: Expected) -> Iterable[Table]:
    """Additional tables."""
    heads = ["frames", "buffer, products", "delivery", *(f"{step:g} dB, {scheme}" for step, scheme in CHANNELS)]
    heads += ["overflow an hour", "fast retransmits for nothing", "time-outs"]
    lines = []
    for frames, buffer, order in READINGS:
        points = [_limited(frames, buffer, order, *channel) for channel in CHANNELS]
        shares = [f"{_share(runs, at):.3f}" for at in points]
        counts = [[round(float(runs(at, of).mean())) for at in points] for of in (_lost, _for_nothing, _timeouts)]
        lines.append([str(frames), str(buffer), order, *shares, *(f"{min(of)} to {max(of)}" for of in counts)])
    title = "Goodput over 0.9 x 384 kbit/s with a window of two products, and what happens in an hour"
    yield Table(title, heads, lines, 3)


def _bandwidth_limited(runs: Runs) -> Claim:
    """Goodput limited by bandwidth, relative to the rate; and the fast retransmits predicted by P_FR."""
    points = [_limited(*READINGS[0], *channel) for channel in CHANNELS]
    shares = [_share(runs, at) for at in points]
    seen = []
    for step in STEPS:
        at = _limited(1, 1.5, "out-of-sequence", step, SCHEMES[0])
        counted, sent = (float(runs(at, of).mean()) for of in (_for_nothing, _sent))
        seen.append(f"{counted:.0f} and {sent * fast_retransmit(step, 1):.0f} ({step:g} dB)")
    events = "fast retransmits for nothing in an hour where nothing overflows, and P_FR times the packets"
    note = f"from {min(shares):.3f} to {max(shares):.3f}; {events}: {', '.join(seen)}"
    return Claim([min(shares)], note=note)


def _limited(frames: int, buffer: float, order: str, step: float, scheme: tuple[int, ...]) -> str:
    """A window of two bandwidth-delay products."""
    limits = {
        "flow.packet": f"{frames * FRAME}B",
        "flow.max_window": f"{round(WINDOW * PRODUCT[frames])}p",
        "edge.up_buffer": f"{round(buffer * PRODUCT[frames])}p",
    }
    channel = {"edge.up.order": order, "edge.up.errors.step": step, "edge.up.rounds": list(scheme)}
    return point(SCENARIO, {**limits, **channel, "measure": ["spurious"]})


def _share(runs: Runs, at: str) -> float:
    return float(runs(at, _goodput).mean()) / RATE


def _of_size(frames: int, arq: str) -> str:
    return point(SCENARIO, {**SMALL, "flow.packet": f"{frames * FRAME}B", "edge.up.arq": arq})


def _full(frames: int) -> str:
    """No ARQ, and enough uploads that slots are hardly ever idle (3 % at five frames). No queue overflows."""
    full = {"flow.count": FULL, "edge.up_buffer": f"{8 * FULL}p"}
    return point(SCENARIO, {**SMALL, "flow.packet": f"{frames * FRAME}B", "edge.up.arq": "none", **full})


def _goodput(one: Run) -> float:
    return float(one["flows"][0]["wire_goodput_bps"])


def _sent(one: Run) -> float:
    return float(sum(flow["segments_sent"] for flow in one["flows"]))


def _lost(one: Run) -> float:
    return float(one["uplink"]["drops"])


def _for_nothing(one: Run) -> float:
    return float(one["flows"][0]["spurious"]["fast_retransmits"])


def _timeouts(one: Run) -> float:
    return float(one["flows"][0]["timeouts"])


def _no_arq(runs: Runs) -> Claim:
    """Without ARQ, one damaged frame loses the packet, and TCP achieves far less.

    The loss is that of a full channel, as everywhere in chapter 4. A single upload sends while nothing is lost and
    waits after a loss, so it does not sample all slots.
    """
    seen, holds = [], True
    for frames in FRAMES:
        sent, lost = (float(runs(_full(frames), of).sum()) for of in (_sent, _lost))
        p = 1 - delay(0.06, frames).law.probabilities[0]  # of no delay: every frame arrives at once
        alone = _of_size(frames, "none")
        share = float(runs(alone, _goodput).mean() / runs(_of_size(frames, "nak"), _goodput).mean())
        holds &= abs(lost - p * sent) <= 3 * sqrt(p * (1 - p) * sent) and share < 0.5
        own = 100 * float(runs(alone, _lost).sum() / runs(alone, _sent).sum())
        loss = f"{100 * lost / sent:.1f} % lost of {100 * p:.1f}"
        seen.append(f"{frames}: {loss}, one upload alone {own:.1f} with {share:.2f} of the goodput with ARQ")
    return Claim(ordering=holds, note=f"frames of a packet, step 0.06 dB: {'; '.join(seen)}")
