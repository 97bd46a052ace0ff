"""Results in words: the sentence of a report that says what was found, with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ackclock.interval import resolution_of
from ackclock.paper.claims_page import with_spread
from ackclock.results import Results, mean_and_interval
from ackclock.text import number, with_separators

if TYPE_CHECKING:
    import pandas as pd

# Smaller differences count as none, even if significant.
_MATTERS = 0.01


def findings(results: Results) -> list[str]:
    """Goodput and queueing delay of the runs; of a comparison the largest goodput, and what regulators change.

    Combinations are compared run by run, under equal seeds.
    """
    if results.are_live:
        return _of_link(results)
    if results.flows.empty:
        return []
    return [*_of_media(results), *_of_flows(results)]


def _of_flows(results: Results) -> list[str]:
    # Downloads and uploads share no capacity: the headline is that of the downloads.
    rate = "bottleneck.goodput_bps" if results.has_both_directions else "goodput_bps"
    columns = (rate, results.queueing_delay)
    runs = results.per_run(columns, [*results.varied, "seed", "run"])
    count = len(runs.drop_duplicates(results.varied)) if results.varied else 1
    if not {"flow.sender", "edge.regulator"} & set(results.varied) or count > _MOST_COMPARED:
        return _of_points_alike(results, runs, rate)
    goodput, delay = (_of_points(runs, column, results.varied) for column in columns)
    first = int(goodput.mean().argmax())
    best = goodput.iloc[:, first] / 1e3
    equal = [
        _named(goodput.columns[i])
        for i in range(len(goodput.columns))
        if i != first and not _beyond_chance(best - goodput.iloc[:, i] / 1e3, float(best.mean()), results.confidence)
    ]
    much = with_separators(with_spread(*mean_and_interval(best, results.confidence)))
    at = f"{much} kbit/s at a p95 queueing delay of {_interval(delay.iloc[:, first].rename(columns[1]), results)} ms"
    name, count = _named(goodput.columns[first]), len(goodput.columns)
    if equal:
        others = ", ".join(equal) if len(equal) <= _MOST_NAMED else f"{len(equal)} others"
        largest = f"Of {count} combinations, {name} has the largest mean goodput, {at}"
        # One run each says nothing of chance.
        equals = f"it does not differ beyond chance from {others}" if len(goodput) > 1 else f"within 1 %: {others}"
        found = [f"{largest}; {equals}."]
    else:
        found = [f"Of {count} combinations, {name} has the most goodput: {at}."]
    found = [*_conclusion(goodput, delay, results.confidence), *found]
    gains, costs = (_against_none(table, results.confidence) for table in (goodput, delay))
    told = [f"{name} changes goodput by {gains[name]} and the p95 queueing delay by {costs[name]}" for name in gains]
    return [*found, f"Compared with the same link without a regulator, {'; '.join(told)}."] if told else found


def _of_media(results: Results) -> list[str]:
    """Delay of frames and frozen time of media flows: of one point, or of the points with least and most delay."""
    if "media.frames" not in results.flows:
        return []
    columns = ["media.frame_delay_ms.p95", "media.freeze_s"]
    keys = results.varied or ["scenario"]
    flows = results.flows[results.flows["media.frames"].notna()]
    points = flows.astype(dict.fromkeys(keys, str)).groupby(keys, sort=False)[columns].mean().sort_values(columns)
    told = [
        f"{number(delay)} ms after their capture, and the picture is frozen for {number(frozen)} s"
        for delay, frozen in points.itertuples(index=False, name=None)
    ]
    if len(points) == 1:
        return [f"95 % of the frames are shown within {told[0]}."]
    least, most = (_named(name if isinstance(name, tuple) else (name,)) for name in (points.index[0], points.index[-1]))
    return [f"With {least}, 95 % of the frames are shown within {told[0]}; with {most}, within {told[-1]}."]


def _conclusion(goodput: pd.DataFrame, delay: pd.DataFrame, confidence: float) -> list[str]:
    """The combination with the largest ratio of goodput to delay, compared with the first or unregulated one."""
    power = (goodput.mean() / delay.mean().clip(lower=1.0)).to_numpy()
    if len(power) < 2 or not (power == power).all():
        return []
    points = [tuple(map(str, point)) for point in goodput.columns]
    base, best = next((i for i, point in enumerate(points) if "none" in point), 0), int(power.argmax())
    if base == best:
        return [f"No combination has a larger ratio of goodput to p95 queueing delay than {_named(points[base])}."]
    of = ((goodput, "goodput"), (delay, "p95 queueing delay"))
    changes = [_changed(table.iloc[:, best], table.iloc[:, base], what, confidence) for table, what in of]
    return [f"{_named(points[best])} compared with {_named(points[base])}: {', '.join(changes)}."]


def _changed(values: pd.Series[float], base: pd.Series[float], what: str, confidence: float) -> str:
    of = float(base.mean())
    if not _beyond_chance(values - base, of, confidence):
        return f"same {what}"
    percent = 100 * (float(values.mean()) / of - 1) if of else float("inf")
    return f"{abs(percent):.0f} % {'more' if percent > 0 else 'less'} {what}"


def _interval(values: pd.Series[float], results: Results) -> str:
    known = values.dropna()
    if known.empty:
        return "-"
    return with_separators(with_spread(*mean_and_interval(known, results.confidence, resolution_of(str(known.name)))))


def _of_points_alike(results: Results, runs: pd.DataFrame, rate: str) -> list[str]:
    """Goodput and queueing delay where neither senders nor regulators differ: of one point, or the range of points."""
    delay = results.queueing_delay
    points = [group for _, group in runs.groupby(results.varied, sort=False)] if results.varied else [runs]
    if len(points) == 1:
        goodput = _interval(runs[rate] / 1e3, results)
        of = " of the downloads" if results.has_both_directions else ""
        found = [f"Goodput{of} is {goodput} kbit/s at a p95 queueing delay of {_interval(runs[delay], results)} ms."]
        return [*found, *_of_uploads(results)]
    goodputs = [float(point[rate].mean()) / 1e3 for point in points]
    delays = [float(point[delay].mean()) for point in points]
    spans = [f"{number(min(of))} to {number(max(of))}" for of in (goodputs, delays)]
    return [f"Over {len(points)} points, mean goodput is {spans[0]} kbit/s and p95 queueing delay {spans[1]} ms."]


def _of_uploads(results: Results) -> list[str]:
    """Goodput and queueing delay of the uploads beside downloads."""
    if not results.has_both_directions:
        return []
    goodput = _interval(results.runs["uplink.goodput_bps"] / 1e3, results)
    delay = _interval(results.runs["uplink.queue_ms.p95"], results)
    return [f"That of the uploads is {goodput} kbit/s, with {delay} ms of p95 queueing delay in the uplink."]


def _of_link(results: Results) -> list[str]:
    """What a live link delivered in each direction, and its queueing delay."""
    run, connections = results.runs.iloc[0], len(results.connections)
    found = [f"{connections} connection{'s' if connections != 1 else ''} in {number(run['duration_s'])} s."]
    for link, way in (("bottleneck", "downlink"), ("uplink", "uplink")):
        delivered, drops = _amount(run[f"{link}.delivered_bytes"]), int(run[f"{link}.drops"])
        used, p95 = run[f"{link}.utilisation"], run[f"{link}.queue_ms.p95"]
        shares = [f"{100 * used:.0f} % of its capacity"] if used == used else []
        delays = [f"p95 queueing delay {number(p95)} ms"] if p95 == p95 else []
        dropped = f"{drops} packet{'s' if drops != 1 else ''} dropped"
        found.append(f"The {way} delivered {', '.join([delivered, *shares, *delays, dropped])}.")
    return found


def _amount(of_bytes: float) -> str:
    """Bytes in the unit that gives a number from 1 to 1000."""
    size, unit = next(((size, unit) for size, unit in _AMOUNTS if of_bytes >= size), (1.0, "B"))
    return f"{number(of_bytes / size)} {unit}"


_AMOUNTS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


# Of more combinations than this, ranges are reported instead of a comparison.
_MOST_COMPARED = 500
# More combinations than this are counted and not named.
_MOST_NAMED = 3


def _of_points(runs: pd.DataFrame, column: str, swept: Sequence[str]) -> pd.DataFrame:
    """A number of each run, with a column per point and a row per seed and run."""
    import pandas as pd

    values = runs.assign(**{key: runs[key].astype(str) for key in swept})
    points = values.groupby([*swept], sort=False).ngroup()
    names = values.drop_duplicates(list(swept))[list(swept)].itertuples(index=False, name=None)
    wide = values.assign(point=points).pivot_table(index=["seed", "run"], columns="point", values=column, dropna=False)
    wide.columns = pd.MultiIndex.from_tuples(list(names), names=list(swept))
    return wide


def _named(point: Any) -> str:
    return " + ".join(point)


def _beyond_chance(differences: pd.Series[float], of: float, confidence: float) -> bool:
    """Whether differences exceed a percent of `of` and their interval excludes zero."""
    mean, half = mean_and_interval(differences, confidence)
    return abs(mean) > max(half, _MATTERS * abs(of))


def _against_none(table: pd.DataFrame, confidence: float) -> dict[str, str]:
    """Paired change of a number by each regulator in percent, relative to the same point without one."""
    if "edge.regulator" not in table.columns.names:
        return {}
    place = list(table.columns.names).index("edge.regulator")
    points = [tuple(map(str, point)) for point in table.columns]
    bases = {_without(point, place): i for i, point in enumerate(points) if point[place] == "none"}
    changes: dict[str, list[tuple[float, float]]] = {}
    for i, point in enumerate(points):
        base = bases.get(_without(point, place))
        if base is not None and base != i:
            without = table.iloc[:, base]
            # Without any queueing delay there is no relative change.
            differences = 100 * (table.iloc[:, i] - without) / (without.mean() or float("nan"))
            changes.setdefault(point[place], []).append(mean_and_interval(differences, confidence))
    return {name: _range(of) for name, of in changes.items()}


def _without(point: tuple[str, ...], place: int) -> tuple[str, ...]:
    return point[:place] + point[place + 1 :]


def _range(changes: Sequence[tuple[float, float]]) -> str:
    """Range of mean changes in percent; a single one with its interval."""
    means = [mean for mean, _ in changes]
    low, high = f"{min(means):+.0f} %", f"{max(means):+.0f} %"
    certain = sum(abs(mean) > half for mean, half in changes)
    if not certain and any(half > 0 for _, half in changes):
        return f"nothing beyond chance ({low if low == high else f'{low} to {high}'})"
    some = f" ({certain} of {len(changes)} beyond chance)" if 0 < certain < len(changes) else ""
    return (low if low == high else f"{low} to {high}") + some
