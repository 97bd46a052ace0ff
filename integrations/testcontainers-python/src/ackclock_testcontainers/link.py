"""Client of the HTTP control of `ackclock link --control`."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any


class Link:
    """A running link. Requests that fail raise `RuntimeError` with the link's reason."""

    def __init__(self, url: str | None = None, token: str | None = None) -> None:
        """Default: `$ACKCLOCK_CONTROL` and `$ACKCLOCK_TOKEN`, which a link sets for its command."""
        self.url = url or os.environ["ACKCLOCK_CONTROL"]
        self.token = token or os.environ["ACKCLOCK_TOKEN"]

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """Send a request and return the answer."""
        request = urllib.request.Request(
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            # The link answers only requests to a loopback address, wherever its port is published.
            headers={
                "Authorization": f"Bearer {self.token}",
                "Content-Type": "application/json",
                "Host": "127.0.0.1",
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{method} {path}: {json.load(error)['error']}") from None

    def conditions(self) -> Any:
        """Conditions in force: the keys of `[edge]`."""
        return self.ask("GET", "/link")

    def set(self, **conditions: Mapping[str, object]) -> Any:
        """Change conditions, as `link.set(down={"rate": "1mbit"})`; returns those in force."""
        return self.ask("PATCH", "/link", conditions)

    def outage(self, time: str, *, direction: str = "both", drop: bool = False) -> Any:
        """Interrupt the link for a time, as `"3s"`."""
        return self.ask("POST", "/outage", {"for": time, "direction": direction, "drop": drop})

    def fault(self, fault: str, *, only: Sequence[str] = (), lasts: str | None = None) -> Any:
        """Let connections fail: `reset`, `cut=up`, `drop-first=2`, `slow-close=5s`; `only` as `["tcp:5432"]`."""
        return self.ask("POST", "/faults", {"fault": fault, "only": list(only), **({"for": lasts} if lasts else {})})

    def mend(self) -> Any:
        """End all faults."""
        return self.ask("DELETE", "/faults")

    def results(self) -> Any:
        """Results so far, as of `ackclock link --json`."""
        return self.ask("GET", "/results")
