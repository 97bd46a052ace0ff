"""Chapters 4 to 6, simulated: TCP over the power-controlled channel, beside its analysis."""

from collections.abc import Iterable, Iterator
from itertools import product
from math import sqrt
from pathlib import Path

from ackclock.paper import Claim, Figure, Runs, Table, point
from ackclock.paper.expected import Expected
from ackclock.paper.measure import Run
from ackclock.papers.m05.analysis import STEPS, delay

SCENARIO = Path(__file__).parent / "scenarios" / "uplink.toml"
FRAME = 960  # bytes
RATE = 0.9 * 384_000  # bit/s: one frame in ten is damaged
SCHEMES = ((1, 1, 1, 1, 1), (1, 2, 3))
SMALL = {"flow.packet": f"{FRAME}B", "flow.max_window": "8p"}
FRAMES = (1, 2, 3, 5)
FULL = 120  # uploads over one channel without ARQ
# The bandwidth-delay product is 0.9 x 384 kbit/s x 226 ms (0.2 s, a TTI, 6 ms of repetitions), 10.2 packets of a frame.
PRODUCT = 10
LIMITED = {**SMALL, "flow.max_window": f"{2 * PRODUCT}p", "edge.up_buffer": f"{PRODUCT}p"}
# Buffer in products, and the order of delivery.
READINGS = tuple(product((1.0, 1.5, 2.0), ("out-of-sequence", "in-sequence")))

CONDITIONS = (
    "Simulated uploads: packets of 960 bytes are one frame; the terminal sends Reno as in the preset m05-uplink, "
    "whose timer has practically no lower limit (1 ms); the channel hands packets on as they are complete."
)
TRIED: dict[str, str] = {
    "M05-S45-4": (
        "The worst of six: three steps, schemes (1, 1, 1, 1, 1) and (1, 2, 3). A window of two products fills one "
        "product of buffer exactly, and frames that are sent again make it overflow. With a buffer of one and a half "
        "products it hardly does (14 packets an hour at most): in sequence the goodput is 0.991 and more "
        "with every step and scheme, 0.9998 with the first; out of sequence, as in chapter 4, packets "
        "that overtake others still halve the window, and it is 0.89 to 0.97. "
        "A buffer of two products changes nothing more (table below)"
    ),
}
CAVEATS: dict[str, str] = {}
ELSEWHERE: dict[str, str] = {}


def points() -> Iterable[str]:
    """The scenario texts to run."""
    for (buffer, order), step, scheme in product(READINGS, STEPS, SCHEMES):
        yield _limited(buffer, order, step, scheme)
    for frames, arq in product(FRAMES, ("nak", "none")):
        yield _of_size(frames, arq)
    for frames in FRAMES:
        yield _full(frames)


def claims(runs: Runs, expected: Expected) -> dict[str, Claim]:
    """Our value of every row that is simulated."""
    stated = [_share(runs, *READINGS[0], step, scheme) for step, scheme in product(STEPS, SCHEMES)]
    return {
        "M05-S45-4": Claim([min(stated)], note=f"from {min(stated):.3f} to {max(stated):.3f}"),
        "M05-O4": _no_arq(runs),
    }


def figures(runs: Runs) -> Iterator[Figure]:
    """The figures that are drawn from runs."""
    return iter(())


def tables(runs: Runs, expected: Expected) -> Iterable[Table]:
    """Tables of what no row asks for."""
    heads = ["buffer, products", "delivery", *(f"{step:g} dB, {scheme}" for step, scheme in product(STEPS, SCHEMES))]
    lines = []
    for buffer, order in READINGS:
        shares = [_share(runs, buffer, order, step, scheme) for step, scheme in product(STEPS, SCHEMES)]
        lines.append([str(buffer), order, *(f"{share:.3f}" for share in shares)])
    yield Table("Goodput over 0.9 x 384 kbit/s with a window of two products", heads, lines, keys=2)


def _limited(buffer: float, order: str, step: float, scheme: tuple[int, ...]) -> str:
    channel = {"edge.up.order": order, "edge.up.errors.step": step, "edge.up.rounds": list(scheme)}
    return point(SCENARIO, {**LIMITED, "edge.up_buffer": f"{round(buffer * PRODUCT)}p", **channel})


def _share(runs: Runs, buffer: float, order: str, step: float, scheme: tuple[int, ...]) -> float:
    return float(runs(_limited(buffer, order, step, scheme), _goodput).mean()) / RATE


def _of_size(frames: int, arq: str) -> str:
    return point(SCENARIO, {**SMALL, "flow.packet": f"{frames * FRAME}B", "edge.up.arq": arq})


def _full(frames: int) -> str:
    """No ARQ, and so many uploads that slots hardly idle (3 % at five frames). Nothing overflows."""
    full = {"flow.count": FULL, "edge.up_buffer": f"{8 * FULL}p"}
    return point(SCENARIO, {**SMALL, "flow.packet": f"{frames * FRAME}B", "edge.up.arq": "none", **full})


def _goodput(one: Run) -> float:
    return float(one["flows"][0]["wire_goodput_bps"])


def _sent(one: Run) -> float:
    return float(sum(flow["segments_sent"] for flow in one["flows"]))


def _lost(one: Run) -> float:
    return float(one["uplink"]["drops"])


def _no_arq(runs: Runs) -> Claim:
    """Without ARQ a packet is lost with any of its frames, and TCP carries far less.

    The loss is that of a full channel, as everywhere in chapter 4. One upload sends while things go well and waits
    after a loss, so that the slots it meets are not all slots.
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
