"""Describes simulations in words: heading, paragraph and provenance of a report."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ackclock.results import Results, label

# Above this number, values are counted instead of listed.
_MOST_NAMED = 4


def plain_key(key: str) -> str:
    """The name of a scenario key without its table: `edge.regulator` is `regulator`."""
    return key.rsplit(".", 1)[-1]


@dataclass(frozen=True)
class Described:
    """Runs with their scenario's tables; without tables, only the runs are described."""

    results: Results
    scenario: Mapping[str, Any]

    def title(self) -> str:
        """Senders, link, and varied keys."""
        if self.results.are_live:
            count = len(self.results.connections)
            return f"{count} connection{'s' if count != 1 else ''} over {self._link() or 'a live link'}"
        over = self._link() or Path(str(self.results.objects[0].get("scenario", "a scenario"))).name
        varied = [key for key in self.results.swept if len(self._values(key)) > 1 and key != "flow.sender"]
        heading = f"{_listed(self._senders())} over {over}"
        if not varied:
            regulator = self._values("edge.regulator")
            return heading if regulator in ([], ["none"]) else f"{heading}, regulator {_listed(regulator)}"
        return f"{heading}: {' and '.join(_counted(plain_key(key), len(self._values(key))) for key in varied)} compared"

    def paragraph(self) -> str:
        """Link, path, senders, buffer, duration and seeds."""
        runs, seconds = len(self.results), {run["duration_s"] for run in self.results.objects if "duration_s" in run}
        lasts = f" of {max(seconds):.6g} s" if seconds else ""
        seeds = sorted({int(run["seed"]) for run in self.results.objects if "seed" in run})
        seeded = f", seed{'s' if len(seeds) > 1 else ''} {_listed(list(map(str, seeds)))}" if seeds else ""
        ran = f"{runs} simulated run{'s' if runs != 1 else ''}{lasts}{seeded}, {self._build()}."
        if self.results.are_live:
            ran = f"Real packets through an emulated link for {max(seconds):.4g} s{seeded}, {self._build()}."
        return " ".join(filter(None, (*self._edge(), ran)))

    def _build(self) -> str:
        """Program and commit of the runs."""
        builds = [run.get("provenance") or {} for run in self.results.objects]
        names = [" ".join(filter(None, (one.get("version"), (one.get("commit") or "")[:10]))) for one in builds]
        return f"ackclock {_listed(list(dict.fromkeys(names)))}"

    def _edge(self) -> list[str]:
        edge, path = self.scenario.get("edge", {}), self.scenario.get("path", {})
        if not edge:
            return []
        capacity = self.results.runs.get("bottleneck.capacity_bps")
        mean = ""
        if capacity is not None and capacity.notna().any():
            mean = f", {capacity.mean() / 1e3:,.0f} kbit/s on average"
        bearer, up = _bearer_in_words(edge), _link_in_words(edge.get("up", {}))
        flows = sum(int(group.get("count", 1)) for group in self.scenario.get("flow", []))
        kind = {frozenset({"mobile"}): "download", frozenset({"server"}): "upload"}.get(self._directions(), "flow")
        rtt = base_rtt_ms(self.scenario)
        wired = [path["rate"]] if "rate" in path else []
        wired += [f"{path['delay']} one way"] if "delay" in path else []
        senders = [
            f"Wired path to the edge: {', '.join(wired)}." if wired else "",
            "" if rtt is None else f"Base RTT {rtt:g} ms.",
            f"{flows} {kind}{'s' if flows != 1 else ''}, sender {_listed(self._senders())}.",
            _relay_in_words(self.scenario.get("relay", {})),
        ]
        return [
            f"Radio: {bearer}{mean}."
            if bearer
            else f"Downlink: {_link_in_words(edge.get('down', {}))}{mean}." + (f" Uplink: {up}." if up else ""),
            *self._certainties(),
            *([] if self.results.are_live else senders),
            self._queue(),
        ]

    def _queue(self) -> str:
        """Buffer, queue and regulator, as far as they are stated."""
        stated = {name: self._values(f"edge.{name}") for name in ("buffer", "queue", "regulator")}
        text = ", ".join(f"{name} {_listed(values)}" for name, values in stated.items() if values)
        return f"{text[0].upper()}{text[1:]}." if text else ""

    def _certainties(self) -> list[str]:
        """What the rates of each recording are to the capacity of its link."""
        said: dict[str, str] = {}
        for run in self.results.objects:
            said |= (run.get("provenance") or {}).get("recordings") or {}
        return [f"The rates of {Path(path).name} are {certainty}." for path, certainty in said.items()]

    def _directions(self) -> frozenset[str]:
        """Ends of the path towards which flows send."""
        return frozenset(group.get("towards", "mobile") for group in self.scenario.get("flow", []))

    def _link(self) -> str:
        """The link in the direction of the data."""
        edge = self.scenario.get("edge", {})
        of = edge.get("up" if self._directions() == {"server"} else "down", {})
        link = _link_in_words({key: of[key] for key in of if key != "delay"}) if of else ""
        return _bearer_in_words(edge) or link

    def _senders(self) -> list[str]:
        """Senders of the scenario, and those of media flows, which have no key `sender`."""
        flows = self.results.flows
        rows = [] if "sender" not in flows else list(dict.fromkeys(flows["sender"].astype(str)))
        known = self._values("flow.sender")
        if not known or "media.frames" not in flows:
            return known or rows
        media = flows.loc[flows["media.frames"].notna(), "sender"].astype(str)
        return list(dict.fromkeys([*known, *media]))

    def _values(self, key: str) -> list[str]:
        """Values of a key: varied ones, or the scenario's."""
        points = [run.get("point") or {} for run in self.results.objects]
        varied = list(dict.fromkeys(str(label(point[key])) for point in points if key in point))
        table, _, name = key.partition(".")
        tables = self.scenario.get(table, [])
        there = [one[name] for one in (tables if isinstance(tables, list) else [tables]) if name in one]
        return varied or list(
            dict.fromkeys(str(value["kind"] if isinstance(value, Mapping) else value) for value in there)
        )


def base_rtt_ms(scenario: Mapping[str, Any]) -> float | None:
    """The RTT without queueing and transmission, if all delays are constant."""
    edge, wired = scenario.get("edge", {}), scenario.get("path", {}).get("delay")
    delays = [wired, wired, *(edge.get(way, {}).get("delay") for way in ("down", "up"))]
    known = [time for time in map(milliseconds, delays) if time is not None]
    return sum(known) if len(known) == len(delays) else None


def milliseconds(delay: Any) -> float | None:
    """A constant delay of a scenario; None for a law."""
    time = re.fullmatch(r"([\d.]+)(us|ms|s)", str(delay))
    return float(time[1]) * {"us": 1e-3, "ms": 1.0, "s": 1e3}[time[2]] if time else None


def _relay_in_words(relay: Mapping[str, Any]) -> str:
    if not relay:
        return ""
    stated = [f"buffer {relay['buffer']}"] if "buffer" in relay else []
    core = relay.get("core", {})
    stated += [f"{core['delay']} one way from the edge"] if "delay" in core else []
    return f"A relay splits the connections{', '.join(['', *stated])}."


def users_of_cell(scenario: Mapping[str, Any]) -> int:
    """Number of users that share a cell of the scenario; 0 without a cell."""
    edge = scenario.get("edge", {})
    radio = edge.get("behind") or edge
    return sum(int(group.get("count", 1)) for group in radio.get("user", []))


def _bearer_in_words(edge: Mapping[str, Any]) -> str:
    """A bearer that is not two links; a box that observes a radio is described by the radio."""
    if edge.get("behind"):
        return _bearer_in_words(edge["behind"]) or _link_in_words(edge["behind"].get("down", {}))
    bearer = edge.get("bearer", "links")
    name = bearer.get("kind", "links") if isinstance(bearer, Mapping) else str(bearer)
    return "" if name == "links" else f"the bearer {name}"


def _link_in_words(link: Mapping[str, Any]) -> str:
    if "file" in link:
        rate = f"the recording {Path(str(link['file'])).name}"
    elif "rate" in link:
        rate = f"{'a varying link of ' if '(' in str(link['rate']) else 'a link of '}{link['rate']}"
    else:
        return f"a {link['kind']} link" if "kind" in link else ""
    return f"{rate}, {link['delay']} one way" if "delay" in link else rate


def _listed(values: Sequence[str]) -> str:
    if len(values) > _MOST_NAMED:
        return f"{values[0]} and {len(values) - 1} others"
    return " and ".join(filter(None, (", ".join(values[:-1]), *values[-1:])))


def _counted(noun: str, count: int) -> str:
    return f"{count} {noun}s"


def provenance(results: Results) -> list[tuple[str, str]]:
    """Scenario and build of all runs: each field once, with all its values."""
    fields: dict[str, dict[str, None]] = {}
    for run in results.objects:
        for key, value in {"scenario": run.get("scenario"), **(run.get("provenance") or {})}.items():
            if value not in (None, {}, []):
                shown = (
                    ", ".join(f"{name} {inner}" for name, inner in value.items()) if isinstance(value, dict) else value
                )
                shown = " ".join(map(str, shown)) if isinstance(shown, list) else str(shown)
                fields.setdefault(key.replace("_", " "), {})[shown] = None
    return [
        (key, "; ".join([*list(values)[:3], *([f"and {len(values) - 3} others"] if len(values) > 3 else [])]))
        for key, values in fields.items()
    ]
