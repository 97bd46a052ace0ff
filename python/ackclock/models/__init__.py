"""Analytical models of TCP throughput over links whose rate and delay vary.

Every model is one file, named by the field's term, and computes in packets and seconds:

* `saw_tooth`: the window saw-tooth of a constant link (Lakshman and Madhow).
* `cycles`: one, two or three losses a cycle (CR02, model 3).
* `pftk`: deterministic losses, full and simplified formula (CR02, model 1).
* `poisson_sde`: Poisson losses by a stochastic differential equation (CR02, model 2).
* `capacity`: the most that a link with a redrawn rate can carry.
* `effective_delay`: the mean delay of a link whose packets must not overtake each other.
* `bounded_pareto`: sizes of web objects (CR04, table I).
* `rayleigh`: shares of rates on a fading channel (CR02, table 4).
"""

from ackclock.models import bounded_pareto, capacity, cycles, effective_delay, pftk, poisson_sde, rayleigh, saw_tooth

__all__ = [
    "bounded_pareto",
    "capacity",
    "cycles",
    "effective_delay",
    "pftk",
    "poisson_sde",
    "rayleigh",
    "saw_tooth",
]
