"""Sections 1.6 and 3.2, simulated: radio network feedback over a channel that users share."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from ackclock.paper import Claim, Figure, Runs, Table, point
from ackclock.paper.expected import Expected
from ackclock.paper.measure import Run
from ackclock.paper.runs import Replaced

SCENARIO = Path(__file__).parent / "scenarios" / "hsdpa.toml"
USERS = (1, 2, 4, 8)
JUDGED = 6  # packets of q_ref
TARGETS = (3, 6, 12, 24)
PACKET = 1500  # bytes
REPORT = {"every": "1s", "delay": "50ms"}  # section 3.6

CONDITIONS = (
    "Over HSDPA, for which the source names no rates: the cell of the preset hsdpa-mac, a download to each user, and "
    "reports of what each user was served over the last second in the time in which it had data."
)
TRIED: dict[str, str] = {}
CAVEATS: dict[str, str] = {}


def points() -> Iterable[str]:
    """The scenario texts to run."""
    for users in USERS:
        yield split(users)
        yield from (steered(users, target) for target in TARGETS)


def steered(users: int, target: int) -> str:
    """A point with this number of users and a proxy that targets this number of packets per user at the radio."""
    steering = {"kind": "rnf", "q_ref": f"{target}p"}
    return point(SCENARIO, {**_of(users), "relay.steering": steering, "edge.report": REPORT})


def split(users: int) -> str:
    """The same proxy without reports: Split TCP."""
    return point(SCENARIO, _of(users))


def _of(users: int) -> dict[str, object]:
    return {"edge.user": [{"count": users}], "flow": [{"count": users, "sender": "cubic"}]}


def claims(runs: Runs, expected: Expected) -> dict[str, Claim]:
    """The longest median queueing delay, relative to the time in which `q_ref` packets are served."""
    ratios = {users: _wait(runs, users, JUDGED) for users in USERS}
    goodputs = {users: _goodput_ratio(runs, users, JUDGED) for users in USERS}
    shown = ", ".join(f"{ratios[users]:.2f} and {goodputs[users]:.2f} ({users})" for users in USERS)
    note = f"wait, and goodput over that of Split TCP, by users: {shown}"
    return {"M05-S16-1": Claim([max(ratios.values())], note=note)}


def null_model(runs: Runs, expected: Expected) -> dict[str, Claim]:
    """The row without reports."""
    alone = {steered(users, JUDGED): split(users) for users in USERS}
    return claims(Replaced(runs, lambda one: alone.get(one, one)), expected)


def figures(runs: Runs) -> Iterator[Figure]:
    """No figures."""
    return iter(())


def tables(runs: Runs, expected: Expected) -> Iterator[Table]:
    """Goodput against queueing delay for several targets."""
    heads = [
        "users",
        "Split TCP, kbit/s and ms",
        *(f"q_ref {target}p, share of its goodput and ms" for target in TARGETS),
    ]
    lines = []
    for users in USERS:
        alone = f"{_goodput(runs, split(users)) / 1e3:.0f}, {_median(runs, split(users)):.0f}"
        cells = [
            f"{_goodput_ratio(runs, users, target):.3f}, {_median(runs, steered(users, target)):.0f}"
            for target in TARGETS
        ]
        lines.append([str(users), alone, *cells])
    yield Table(
        "Radio network feedback over shared HSDPA: goodput, and the median wait at the base station", heads, lines, 1
    )


def _wait(runs: Runs, users: int, target: int) -> float:
    at = steered(users, target)
    return _median(runs, at) / (target * PACKET * 8 * users / _goodput(runs, at) * 1e3)


def _goodput_ratio(runs: Runs, users: int, target: int) -> float:
    return _goodput(runs, steered(users, target)) / _goodput(runs, split(users))


def _goodput(runs: Runs, at: str) -> float:
    return float(runs(at, lambda one: sum(flow["wire_goodput_bps"] for flow in one["flows"])).mean())


def _median(runs: Runs, at: str) -> float:
    def wait(one: Run) -> float:
        return float(one["bottleneck"]["queue_ms"]["p50"])

    return float(runs(at, wait).mean())
