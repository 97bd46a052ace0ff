"""The same work for ackclock, ns-2 and ns-3: command lines, and which of the peers are installed."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
PEERS = HERE / "peers"
SCENARIOS = HERE / "scenarios"
# pkg-config of Debian's libns3-dev names a library that it does not depend on, so they are named here.
NS3_LIBRARIES = ["applications", "internet", "traffic-control", "point-to-point", "network", "core"]


@dataclass(frozen=True)
class Hop:
    """The hop down to the mobile and back: an item of Chan and Ramjee's table 1. Seconds and bit/s."""

    rate_sd: float = 0
    delay_mean: float = 0
    fixed_delay: float = 0.2
    reverse_delay: float = 0.2

    def sets(self) -> list[str]:
        """The hop as overrides of a scenario with the preset `cr02`."""
        rate = f"u(200kbit/s, {self.rate_sd / 1000:g}kbit/s)" if self.rate_sd else "200kbit/s"
        fixed = f"{self.fixed_delay * 1000:g}ms"
        delay = f"e({self.delay_mean * 1000:g}ms)" if self.delay_mean else fixed
        return [f"edge.down.rate={rate}", f"edge.down.delay={delay}", f"edge.up.delay={self.reverse_delay * 1000:g}ms"]


ITEMS = {
    1: Hop(),
    2: Hop(delay_mean=0.02, fixed_delay=0, reverse_delay=0.38),
    3: Hop(delay_mean=0.05, fixed_delay=0, reverse_delay=0.35),
    4: Hop(delay_mean=0.1, fixed_delay=0, reverse_delay=0.3),
    5: Hop(rate_sd=20e3),
    6: Hop(rate_sd=50e3),
    7: Hop(rate_sd=75e3),
    8: Hop(rate_sd=50e3, delay_mean=0.05, fixed_delay=0, reverse_delay=0.35),
    9: Hop(rate_sd=75e3, delay_mean=0.1, fixed_delay=0, reverse_delay=0.3),
}


def ackclock(
    scenario: str, seconds: float, sets: Mapping[str, object] | Sequence[str] = (), seed: int = 1
) -> list[str]:
    """One run of a scenario of this folder."""
    pairs = [f"{key}={value}" for key, value in sets.items()] if isinstance(sets, Mapping) else sets
    pairs = [f"duration={seconds:.3f}s", *pairs]
    options = [word for pair in pairs for word in ("--set", pair)]
    return ["ackclock", "run", str(SCENARIOS / scenario), "--json", "--seed", str(seed), *options]


def ns2_one_flow(
    hop: Hop, seconds: float, tcp: str = "Reno", buffer: int = 10, seed: int = 1, exact: bool = False
) -> list[str]:
    """One flow over a hop in ns-2; windows are halved in whole segments, as its agents did until 2006, or exactly."""
    values = {**vars(hop), "tcp": tcp, "buffer": buffer, "seed": seed, "seconds": seconds, "exact": int(exact)}
    return ["ns", str(PEERS / "one_flow.tcl"), *(str(word) for pair in values.items() for word in pair)]


def ns2_many_flows(flows: int, seconds: float) -> list[str]:
    """Flows with a bottleneck each in ns-2."""
    return ["ns", str(PEERS / "many_flows.tcl"), str(flows), str(seconds)]


def ns3(binary: Path, hop: Hop, seconds: float, flows: int = 1) -> list[str]:
    """Flows with a bottleneck each in ns-3."""
    options = {"flows": flows, "seconds": seconds, "delay-mean": hop.delay_mean}
    options |= {"fixed-delay": hop.fixed_delay, "reverse-delay": hop.reverse_delay}
    return [str(binary), *(f"--{name}={value}" for name, value in options.items())]


def has_ns2() -> bool:
    """Whether ns-2 is on the path."""
    return shutil.which("ns") is not None


def build_ns3(folder: Path) -> Path | None:
    """Compile the ns-3 peer where ns-3 and a compiler are installed."""
    return build_peer("flows.cc", folder / "ns3-flows", NS3_LIBRARIES)


def build_peer(source: str, binary: Path, libraries: list[str]) -> Path | None:
    """Compile a peer that links libraries of ns-3; None where ns-3 or a compiler is missing."""
    binary.parent.mkdir(parents=True, exist_ok=True)
    compiler = shutil.which("g++")
    if compiler is None:
        return None
    linked = [f"-lns3-{name}" for name in libraries]
    command = [compiler, "-O2", "-std=c++17", str(PEERS / source), "-o", str(binary), *linked]
    built = subprocess.run(command, capture_output=True, check=False)
    return binary if built.returncode == 0 else None
