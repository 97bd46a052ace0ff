"""Figures of formulas; those of simulations are in `proxy` and `channel`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ackclock import plot
from ackclock.models import (
    delay_equation,
    feedback_loop,
    feedforward_loop,
    frame_errors,
    optimal_delays,
    packet_delay,
    power_control,
)
from ackclock.paper import Figure
from ackclock.papers.m05 import analysis
from ackclock.papers.m05.analysis import SIZES, STEPS, TTI

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


def figures() -> Iterator[Figure]:
    """Every figure."""
    yield Figure("figure-3-3", "Figure 3.3: how fast the feedforward loop settles.", feedforward_loop.picture())
    yield Figure("figure-3-4", "Figure 3.4: phase portrait of the feedback loop without its delay.", figure_3_4())
    yield Figure(
        "feedback-with-delay",
        "The same loop with its delay and a safe gain, c' tau = 0.3, from four corners; the star is the equilibrium.",
        feedback_loop.picture(2.0, feedback_loop.SAFE),
    )
    coding = analysis.chain(0.06).coding
    yield Figure(
        "figure-4-3", "Figure 4.3: frame error rate over the SIR reference.", frame_errors.picture(coding, 0.1)
    )
    chains = [analysis.chain(step) for step in STEPS]
    yield Figure("figure-4-5", "Figure 4.5: stationary law of the power control.", power_control.picture(chains))
    laws = [analysis.delay(0.06, n) for n in (1, 2, 3, 6, 7)]
    yield Figure(
        "figure-4-7",
        "Figure 4.7: retransmission delay with a step of 0.06 dB; the scale of probabilities is logarithmic.",
        packet_delay.picture(laws, TTI),
    )
    yield Figure("figure-4-9", "Figure 4.9: probability of a spurious time-out.", figure_4_9())
    yield Figure(
        "figure-5-2", "Figure 5.2: the law of table 5.1 before and after.", optimal_delays.picture(analysis.optimum())
    )
    yield Figure(
        "repetition",
        "Section 5.2: P_TO of packets of one frame that are repeated after g slots; the mean delay grows with g for "
        "every process.",
        repetition(),
    )


def figure_3_4() -> "Drawing":
    """Trajectories for unit parameters, b = c' = q_ref = 1 and tau = 0, in virtual time: a unit is a round trip."""

    def slope(now: NDArray[np.float64], _: NDArray[np.float64]) -> NDArray[np.float64]:
        q, w = now
        return np.array([w - q, -q * (q - 1)])

    with plot.panel("queue q", "window w") as (figure, axes):
        for q in (0.02, 0.5, 1.5, 2.0, 2.5):
            for w in (0.0, 2.5):
                _, states = delay_equation.solve(slope, (q, w), 0.0, 30.0, least=0.0)
                axes.plot(states[:, 0], states[:, 1], color=plot.COLOURS[0], linewidth=1.1)
        axes.plot([1], [1], "*", color="#000000", markersize=12)
        axes.set(xlim=(0, 2.7), ylim=(0, 2.7))
    return figure


def figure_4_9() -> "Drawing":
    """P_TO over the size of a packet."""
    with plot.panel("frames of a packet", "P_TO (%)") as (figure, axes):
        for step, colour, marker in zip(STEPS, plot.COLOURS, plot.MARKERS, strict=False):
            p = [100 * analysis.delay(step, n).law.p_timeout for n in SIZES]
            axes.plot(SIZES, p, color=colour, marker=marker, label=f"step {step:g} dB")
        axes.set_ylim(0, None)
        axes.set_xticks(SIZES)
        axes.legend()
    return figure


def repetition() -> "Drawing":
    """P_TO over g."""
    with plot.panel("slots g from a damaged frame to its repetition", "P_TO (%)") as (figure, axes):
        for name, colour in zip(analysis.PROCESSES, plot.COLOURS, strict=False):
            p = [100 * one for one in analysis.p_timeout_by_g(name)]
            axes.plot(range(1, len(p) + 1), p, color=colour, label=name)
        axes.set(xscale="log", ylim=(0, None))
        axes.set_xticks([1, 2, 5, 10, 20, 50, 100], ["1", "2", "5", "10", "20", "50", "100"])
        axes.legend(fontsize=9)
    return figure
