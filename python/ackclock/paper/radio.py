"""Cell parameters that no source states, from the scenario, for captions and tables."""

from ackclock.scenario import tables

_SLOTS = {"next": "packets share slots", "waste": "slots of one packet"}


def channel(at: str) -> str:
    """Doppler frequency and mean SNR of a point's users."""
    users = tables(at, "point")["edge"]["user"]
    dopplers, snrs = (dict.fromkeys(user[key] for user in users) for key in ("doppler", "mean_snr"))
    return f"Doppler {_joined(dopplers)} Hz, mean SNR {_joined(snrs)} dB"


def places(at: str, ahead: int) -> str:
    """Payload of a slot at a point, and buffer slots beyond the number that a figure names."""
    beyond = {0: "no place", 1: "one place"}.get(ahead, f"{ahead} places")
    return f"{_SLOTS[tables(at, 'point')['edge']['down']['remainder']]}, {beyond} beyond each buffer"


def _joined(numbers: dict[float, None]) -> str:
    return " and ".join(f"{number:g}" for number in numbers)
