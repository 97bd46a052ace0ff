"""The source's tables compared with ours."""

from collections.abc import Iterator

from ackclock.paper import Table
from ackclock.paper.expected import Expected
from ackclock.papers.m05 import analysis
from ackclock.papers.m05.analysis import EXAMPLES, LONGEST, SIZES, STEPS


def tables(expected: Expected) -> Iterator[Table]:
    """All tables."""
    yield table_4_1(expected)
    yield table_4_2(expected)
    yield table_4_3(expected)
    yield table_5_1(expected)
    yield table_5_2(expected)
    yield repetition()


def table_4_1(expected: Expected) -> Table:
    """Mean and standard deviation of the delay, with P_TO of figure 4.9."""
    lines = []
    for n in SIZES:
        cells = [str(n)]
        for step in STEPS:
            law = analysis.delay(step, n).law
            mean, sd = (expected[f"M05-T41-{step:g}-{n}-{what}"].value for what in ("mean", "sd"))
            cells += [f"{mean} ± {sd}", f"{law.mean:.3f} ± {law.sd:.3f}", f"{100 * law.p_timeout:.3f}"]
        lines.append(cells)
    heads = [f"{what}, {step:g} dB" for step in STEPS for what in ("printed", "ours", "P_TO %")]
    return Table("Table 4.1, retransmission delay in TTI, and P_TO", ["frames", *heads], lines)


def table_4_2(expected: Expected) -> Table:
    """Spurious fast retransmits."""
    lines = []
    for n in (1, 2, 3):
        ours = ((step, 100 * analysis.fast_retransmit(step, n)) for step in STEPS)
        lines.append([str(n), *(f"{expected[f'M05-T42-{n}-{step:g}'].value} / {p:.3f}" for step, p in ours)])
    heads = [f"{step:g} dB, printed / ours" for step in STEPS]
    return Table("Table 4.2, P_FR in percent", ["frames", *heads], lines)


def table_4_3(expected: Expected) -> Table:
    """Cost of spurious events."""
    lines = []
    for event, of in ((event, of) for event in ("FR", "TO") for of in EXAMPLES):
        cells = [f"P_{event}", str(of.size)]
        for step in STEPS:
            printed = expected[f"M05-T43-{event}-{of.size}-{step:g}"].value
            cells.append(f"{printed} / {of.degradation(event, step):.2f}")
        lines.append(cells)
    heads = [f"{step:g} dB, printed / ours" for step in STEPS]
    return Table("Table 4.3, degradation in percent", ["due to", "packet", *heads], lines, 2)


def table_5_1(expected: Expected) -> Table:
    """The delay distribution to optimise."""
    law = analysis.law()
    lines = []
    for ms, p in zip(law.delays, law.probabilities, strict=True):
        if ms <= LONGEST:
            lines.append([f"{ms:g}", expected[f"M05-T51-{ms:g}"].value, f"{100 * p:.3f}"])
    return Table("Table 5.1, retransmission delay of two frames at 0.06 dB", ["ms", "printed %", "ours %"], lines)


def table_5_2(expected: Expected) -> Table:
    """Throughput before and after."""
    lines = [[name, expected[f"M05-T52-{name}"].value, f"{of:.2f}"] for name, of in analysis.throughput().items()]
    return Table("Table 5.2, throughput in KiB/s", ["throughput", "printed", "ours"], lines)


def repetition() -> Table:
    """The best g by both measures."""
    lines = []
    for name in analysis.PROCESSES:
        p = analysis.p_timeout_by_g(name)
        best = analysis.best_g(name)
        lines.append(
            [
                name,
                f"{100 * p[0]:.3f}",
                f"{100 * p[2]:.3f}",
                str(best),
                f"{100 * p[best - 1]:.3f}",
                f"{100 * p[-1]:.3f}",
            ]
        )
    heads = ["errors", "P_TO %, g = 1", "g = 3", "best g", "P_TO % there", f"g = {analysis.MOST_G}"]
    return Table("Repetition after g slots, packets of one frame", heads, lines)
