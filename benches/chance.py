"""Random scenarios for `never_worse.py` and `judge.py`: links, queues, packets, losses, buffers, flows.

The domain, each number with equal chance for each doubling: mean rates of 16 kbit/s to 50 Mbit/s, constant or varying,
cells and recordings; one-way delays of 1 to 300 ms on the wired path and 1 to 100 ms on the radio; drop-tail in half of
the scenarios, else CoDel, FQ-CoDel, PIE or RED; packets of 1500 bytes in half, else 300 to 9000; buffers of 2 to 1000
packets; loss of up to 5 % on the wired path and up to 1 % on the radio; 1 to 50 downloads of nine senders, which start
within five seconds, or, in a third, all at once.

A set and a number decide a scenario. There are two sets. While a regulator is designed, DESIGN may be looked at as
often as needed. FINAL is for the last judgement: it is run once, when the regulator is done. Change the regulator after
a look at it, and FINAL needs another name.
"""

import re
from collections.abc import Callable
from math import inf
from pathlib import Path

from drawn import Draw

DESIGN, FINAL = "wide design", "second wide final, November 2026"
SETS = {"design": DESIGN, "final": FINAL}

SENDERS = ("reno", "newreno", "sack", "sack1", "eifel", "westwood", "westwood-plus", "cubic", "bbr")
QUEUES = ("codel", "fq-codel", "pie", "red")
SCHEDULERS = ("round-robin", "max-rate", "pf")
RECORDINGS = Path(__file__).resolve().parents[1] / "scenarios" / "recordings"
# Least length of a run in s: where flows start together it is short, so that their start decides. On slow links a run
# is longer, until so many packets could be sent.
SECONDS, SECONDS_TOGETHER, LEAST_PACKETS = 60, 10, 200
# Mean rates of links, bit/s; the least of an uplink; and the mean rate of cells and recordings, about.
LEAST_BPS, MOST_BPS, LEAST_UP_BPS, OTHERS_BPS = 16e3, 50e6, 3e3, 500e3
# Bytes of a packet in half of the scenarios, and in the others.
PACKET, SMALLEST, LARGEST = 1500, 300, 9000
# Buffers as multiples of bandwidth x delay.
BUFFERS = {0.5: "below half of bandwidth x delay", 2.0: "0.5 to 2 x", 8.0: "2 to 8 x", inf: "above 8 x"}
RATES = {100e3: "16 to 100 kbit/s", 1e6: "0.1 to 1 Mbit/s", 1e7: "1 to 10 Mbit/s", inf: "10 to 50 Mbit/s"}


def features(name: str, number: int) -> dict[str, str]:
    """Names of the groups that scenario `number` of the set `name` belongs to, one for each feature."""
    draw = Draw(name, number)
    senders = sorted(set(re.findall(r'sender = "(.*)"', flows(draw, 0))))
    rate, link, size = mean_bps(draw), draw.dealt("link", LINKS), packet(draw)
    trip = 2 * (wire_ms(draw) + radio_ms(draw)) / 1e3
    share = buffer(draw) * 8 * size / (rate * trip)
    return {
        "link": link.__name__.replace("_", " "),
        "rate": link.__name__ if link in (cell, recording) else band(rate, RATES),
        "queue": queue(draw),
        "packets": band(size, {PACKET - 1: "smaller", PACKET: f"{PACKET} bytes", LARGEST: "larger"}),
        "loss": "some" if path_loss(draw) or radio_loss(draw) else "none",
        "flows": band(flow_count(draw), {1: "1", 9: "2 to 9", 50: "10 to 50"}),
        "start": "together" if together(draw) else "apart",
        "buffer": link.__name__ if link in (cell, recording) else band(share, BUFFERS),
        "sender": senders[0] if len(senders) == 1 else "two of them",
    }


def band(value: float, ends: dict[float, str]) -> str:
    """Name of the band that contains a value; each band ends at its number and starts at the previous one's."""
    return next(words for end, words in ends.items() if value <= end)


def scenario(name: str, number: int, run: int, boxed: bool = False) -> str:
    """Scenario `number` of the set `name`, without a regulator.

    Each run starts its flows at another instant: many scenarios draw nothing else, and all their runs would be equal.
    With `boxed`, the link is behind a box that observes its queue, on either side of the radio.
    """
    draw, radio = Draw(name, number), "edge.behind" if boxed else "edge"
    rate = mean_bps(draw)
    up = max(LEAST_UP_BPS, rate / draw.between("asymmetry", 1, 30))
    return (
        f'version = 1\npreset = "linux"\nduration = "{seconds(draw)}s"\n\n'
        f'[path]\ndelay = "{wire_ms(draw):.3f}ms"\nloss = {path_loss(draw):.7f}\n\n'
        f'{box(draw) if boxed else ""}[{radio}]\nbuffer = "{buffer(draw):.0f}p"\nqueue = "{queue(draw)}"\n\n'
        f"[{radio}.down]\n{down(draw, rate)}{radio_loss(draw)}\n"
        f'[{radio}.up]\nkind = "constant"\nrate = "{up:.0f}bit/s"\n'
        f'delay = "{radio_ms(draw):.3f}ms"\n{users(draw)}{flows(draw, run)}'
    )


def has_box(name: str, number: int) -> bool:
    """Whether the link of a scenario may be behind a box, which knows no cells."""
    return Draw(name, number).dealt("link", LINKS) is not cell


def box(draw: Draw) -> str:
    """A box with its default buffer, at the mobile or between servers and radio."""
    side = draw.dealt("side", ("mobile", "network"))
    return f'[edge]\nbuffer = "3bdp"\nbearer = {{ kind = "observed", side = "{side}", record_interval = "1ms" }}\n\n'


def mean_bps(draw: Draw) -> float:
    """Mean rate of the link in bit/s; cells and recordings have their own rate, about `OTHERS_BPS`."""
    if draw.dealt("link", LINKS) in (cell, recording):
        return OTHERS_BPS
    return draw.between("rate", LEAST_BPS, MOST_BPS)


def seconds(draw: Draw) -> int:
    """Length of a run."""
    least = SECONDS_TOGETHER if together(draw) else SECONDS
    return max(least, round(LEAST_PACKETS * 8 * packet(draw) / mean_bps(draw)))


def wire_ms(draw: Draw) -> float:
    """One-way delay of the wired path."""
    return draw.between("wire", 1, 300)


def buffer(draw: Draw) -> float:
    """Packets that the queue holds."""
    return draw.between("buffer", 2, 1000)


def queue(draw: Draw) -> str:
    """Queue discipline: drop-tail in half of the scenarios."""
    return draw.dealt("queue", QUEUES) if draw.unit("has queue") < 0.5 else "drop-tail"


def packet(draw: Draw) -> int:
    """Bytes of a full packet: `PACKET` in half of the scenarios."""
    return PACKET if draw.unit("full") < 0.5 else round(draw.between("packet", SMALLEST, LARGEST))


def together(draw: Draw) -> bool:
    """Whether all flows start at the same instant, as in a third of the scenarios."""
    return draw.unit("together") < 1 / 3


def path_loss(draw: Draw) -> float:
    """Share that the wired path loses; nothing in half of the scenarios."""
    return draw.between("loss", 1e-4, 5e-2) if draw.unit("has loss") < 0.5 else 0.0


def radio_loss(draw: Draw) -> str:
    """Loss on the radio: none in two of three scenarios, else independent or in bursts."""
    which = draw.unit("radio loss")
    if which < 2 / 3:
        return ""
    share = draw.between("radio share", 1e-4, 1e-2)
    if which < 5 / 6:
        return f"loss = {share:.7f}\n"
    # Bursts of 30 ms on average, in intervals of 10 ms, that lose half of the packets.
    return f'loss = {{ kind = "gilbert-elliott", p = {2 * share / 3:.7f}, r = 0.3333, bad = 0.5 }}\n'


def radio_ms(draw: Draw) -> float:
    """Delay of the radio, one way."""
    return draw.between("radio", 1, 100)


def down(draw: Draw, rate: float) -> str:
    """The downlink, of about `rate` bit/s unless it is a recording."""
    return draw.dealt("link", LINKS)(draw, rate)


def constant(draw: Draw, rate: float) -> str:
    """A rate and a delay."""
    return f'kind = "constant"\nrate = "{rate:.0f}bit/s"\ndelay = "{radio_ms(draw):.3f}ms"\n'


def variable_rate(draw: Draw, rate: float) -> str:
    """A rate redrawn in each interval, from one of four distributions."""
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
    """A delay drawn for each packet, from one of three distributions."""
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


def cell(draw: Draw, _rate: float) -> str:
    """A cell whose users fade."""
    return f'kind = "cell"\nscheduler = "{draw.dealt("scheduler", SCHEDULERS)}"\ndelay = "{radio_ms(draw):.3f}ms"\n'


LINKS: tuple[Callable[[Draw, float], str], ...] = (
    constant,
    variable_rate,
    variable_rate,
    variable_delay,
    outages,
    recording,
    cell,
)


def users(draw: Draw) -> str:
    """The users of a cell, who share its downloads; other links need no such table."""
    if draw.dealt("link", LINKS) is not cell:
        return ""
    count = min(flow_count(draw), round(draw.between("users", 1, 8)))
    return f"\n[[edge.user]]\ncount = {count}\nmean_snr = {10 * draw.unit('snr') - 2:.2f}\n"


def flow_count(draw: Draw) -> int:
    """Number of flows."""
    return max(1, round(draw.between("flows", 0.5, 50.49)))


def flows(draw: Draw, run: int) -> str:
    """1 to 50 downloads of one sender, or of two senders in a third of the scenarios."""
    start = 1000 * draw.unit(f"begin {run}")
    one, other = draw.dealt("sender", SENDERS), draw.dealt("other sender", SENDERS)
    most = flow_count(draw)
    second = most // 2 if draw.unit("mixed") < 1 / 3 else 0
    stagger = 0 if together(draw) else 5000 // most
    groups = ((one, most - second), (other, second))
    return "".join(group(sender, count, packet(draw), start, stagger) for sender, count in groups if count)


def group(sender: str, count: int, size: int, start: float, stagger: int) -> str:
    """Flows of one sender: the first starts at `start`, each other `stagger` after the one before, in ms."""
    apart = f'stagger = "{stagger}ms"\n' if count > 1 or not stagger else ""
    return f'\n[[flow]]\nsender = "{sender}"\npacket = "{size}B"\ncount = {count}\nstart = "{start:.3f}ms"\n{apart}'
