"""Random scenarios: links, rates, laws, losses, buffers, 1 to 50 flows of all senders, for `never_worse.py`.

A scenario is named by a set and a number, and nothing else decides it. There are two sets. Who designs a regulator
looks at DESIGN as often as he likes. FINAL is for the last judgement: it is run when a regulator is done, and what is
changed after a look at it must be judged on a set of another name.
"""

import re
from collections.abc import Callable
from math import inf
from pathlib import Path

from drawn import Draw

DESIGN, FINAL = "design", "thirteenth final, November 2026"
SETS = {"design": DESIGN, "final": FINAL}

SENDERS = ("reno", "newreno", "sack", "sack1", "eifel", "westwood", "westwood-plus", "cubic", "bbr")
RECORDINGS = Path(__file__).resolve().parents[1] / "scenarios" / "recordings"
# Length of a run, s, and the rates that links have in the mean, bit/s.
SECONDS = 60
LEAST_BPS, MOST_BPS = 100e3, 50e6
# Shares of bandwidth x delay that a buffer holds.
BUFFERS = {0.5: "below half of bandwidth x delay", 2.0: "0.5 to 2 x", 8.0: "2 to 8 x", inf: "above 8 x"}


def features(name: str, number: int) -> dict[str, str]:
    """What tables group scenarios by."""
    draw = Draw(name, number)
    senders = sorted(set(re.findall(r'sender = "(.*)"', flows(draw, 0))))
    rate = draw.between("rate", LEAST_BPS, MOST_BPS)
    trip = 2 * (wire_ms(draw) + radio_ms(draw)) / 1e3
    link = draw.dealt("link", LINKS)
    share = buffer(draw) * 12_000 / (rate * trip)
    return {
        "link": link.__name__.replace("_", " "),
        "loss": "some" if path_loss(draw) or radio_loss(draw) else "none",
        "flows": band(flow_count(draw), {1: "1", 9: "2 to 9", 50: "10 to 50"}),
        # A recording has a rate of its own.
        "buffer": "of a recording" if link is recording else band(share, BUFFERS),
        "sender": senders[0] if len(senders) == 1 else "two of them",
    }


def band(value: float, ends: dict[float, str]) -> str:
    """The words of the band that a value lies in, each from the end of the one before to its own."""
    return next(words for end, words in ends.items() if value <= end)


def scenario(name: str, number: int, run: int) -> str:
    """Scenario `number` of the set `name`, without a regulator.

    Each run begins at an instant of its own: many scenarios draw nothing else, and all their runs would be the same.
    """
    draw = Draw(name, number)
    rate = draw.between("rate", LEAST_BPS, MOST_BPS)
    return (
        f'version = 1\npreset = "linux"\nduration = "{SECONDS}s"\n\n'
        f'[path]\ndelay = "{wire_ms(draw):.3f}ms"\nloss = {path_loss(draw):.7f}\n\n'
        f'[edge]\nbuffer = "{buffer(draw):.0f}p"\n\n'
        f"[edge.down]\n{down(draw, rate)}{radio_loss(draw)}\n"
        f'[edge.up]\nkind = "constant"\nrate = "{rate / draw.between("asymmetry", 1, 30):.0f}bit/s"\n'
        f'delay = "{radio_ms(draw):.3f}ms"\n{flows(draw, run)}'
    )


def wire_ms(draw: Draw) -> float:
    """Delay of the wire, one way."""
    return draw.between("wire", 1, 200)


def buffer(draw: Draw) -> float:
    """Packets that may wait."""
    return draw.between("buffer", 2, 1000)


def path_loss(draw: Draw) -> float:
    """Share that is lost on the wire; nothing in half of the scenarios."""
    return draw.between("loss", 1e-5, 2e-2) if draw.unit("has loss") < 0.5 else 0.0


def radio_loss(draw: Draw) -> str:
    """What the radio loses: nothing in two of three scenarios, else a share or bursts."""
    which = draw.unit("radio loss")
    if which < 2 / 3:
        return ""
    share = draw.between("radio share", 1e-4, 1e-2)
    if which < 5 / 6:
        return f"loss = {share:.7f}\n"
    # Bursts of 30 ms in the mean, in intervals of 10 ms, that lose half.
    return f'loss = {{ kind = "gilbert-elliott", p = {2 * share / 3:.7f}, r = 0.3333, bad = 0.5 }}\n'


def radio_ms(draw: Draw) -> float:
    """Delay of the radio, one way."""
    return draw.between("radio", 1, 100)


def down(draw: Draw, rate: float) -> str:
    """The link towards the mobiles, of about `rate` bit/s where no recording says it."""
    return draw.dealt("link", LINKS)(draw, rate)


def constant(draw: Draw, rate: float) -> str:
    """A rate and a delay."""
    return f'kind = "constant"\nrate = "{rate:.0f}bit/s"\ndelay = "{radio_ms(draw):.3f}ms"\n'


def variable_rate(draw: Draw, rate: float) -> str:
    """A rate that is drawn anew in each interval, by one of four laws."""
    sd = draw.between("sd", 0.1, 0.55) * rate
    laws = {
        "uniform": f"u({rate:.0f}bit/s, {sd:.0f}bit/s)",
        "exponential": f"{0.1 * rate:.0f}bit/s + e({0.9 * rate:.0f}bit/s)",
        "log-normal": f"ln({rate:.0f}bit/s, {2 * sd:.0f}bit/s)",
        "levels": f"table({0.2 * rate:.0f}bit/s: 1, {rate:.0f}bit/s: 2, {2 * rate:.0f}bit/s: 1)",
    }
    law = laws[draw.dealt("law", list(laws))]
    redraw = f"interval({draw.between('redraw', 5, 3000):.0f}ms)"
    return f'kind = "variable"\nrate = "{law}"\ndelay = "{radio_ms(draw):.3f}ms"\nredraw = "{redraw}"\n'


def variable_delay(draw: Draw, rate: float) -> str:
    """A delay that is drawn anew for each packet, by one of three laws."""
    mean = radio_ms(draw)
    laws = {
        "exponential": f"e({mean:.3f}ms)",
        "uniform": f"u({mean:.3f}ms, {0.5 * mean:.3f}ms)",
        "log-normal": f"ln({mean:.3f}ms, {mean:.3f}ms)",
    }
    law = laws[draw.dealt("law", list(laws))]
    return f'kind = "variable"\nrate = "{rate:.0f}bit/s"\ndelay = "{law}"\nredraw = "packet"\n'


def outages(draw: Draw, rate: float) -> str:
    """A constant rate that stops now and then."""
    every, lasts = draw.between("every", 2, 20), draw.between("lasts", 0.05, 1.9)
    stops = f'outages = [{{ at = "{every / 2:.3f}s", for = "{lasts:.3f}s", every = "{every:.3f}s" }}]'
    return f'kind = "variable"\nrate = "{rate:.0f}bit/s"\ndelay = "{radio_ms(draw):.3f}ms"\n{stops}\n'


def recording(draw: Draw, _rate: float) -> str:
    """A synthetic recording of the project."""
    file = draw.dealt("recording", sorted(RECORDINGS.glob("*.down")))
    return f'kind = "trace"\nfile = "{file}"\ndelay = "{radio_ms(draw):.3f}ms"\n'


LINKS: tuple[Callable[[Draw, float], str], ...] = (
    constant,
    variable_rate,
    variable_rate,
    variable_delay,
    outages,
    recording,
)


def flow_count(draw: Draw) -> int:
    """How many flows there are."""
    return max(1, round(draw.between("flows", 0.5, 50.49)))


def flows(draw: Draw, run: int) -> str:
    """1 to 50 flows that begin within 5 s, of one sender, or of two in a third of the scenarios."""
    begin = 1000 * draw.unit(f"begin {run}")
    one, other = draw.dealt("sender", SENDERS), draw.dealt("other sender", SENDERS)
    most = flow_count(draw)
    second = most // 2 if draw.unit("mixed") < 1 / 3 else 0
    groups = ((one, most - second), (other, second))
    return "".join(group(sender, count, begin, 5000 // most) for sender, count in groups if count)


def group(sender: str, count: int, begin: float, apart: int) -> str:
    """Flows of one sender, of which the first begins at an instant and each other so much later, ms."""
    return f'\n[[flow]]\nsender = "{sender}"\ncount = {count}\nstart = "{begin:.3f}ms"\nstagger = "{apart}ms"\n'
