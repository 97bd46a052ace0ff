"""A container whose command runs behind a link."""

from __future__ import annotations

import json
import secrets
import shlex
from collections.abc import Sequence

from testcontainers.core.container import DockerContainer

from ackclock_testcontainers.link import Link

# Port of the link's control, at the container's loopback address.
CONTROL = 8474


def arguments(command: str | Sequence[str], publish: int, options: Sequence[str]) -> list[str]:
    """Command line of a container: a link around the command, whose port is reached from outside."""
    words = shlex.split(command) if isinstance(command, str) else list(command)
    return ["ackclock", "link", *options, "--publish", f"0.0.0.0:{publish}", "--control", str(CONTROL), "--", *words]


class LinkContainer(DockerContainer):
    """A service behind an emulated link; its image has the command `ackclock` and `curl`.

    Args:
        image: Image of the service.
        command: Command of the service.
        publish: Port at which the service listens.
        profile: Profile of the link (`ackclock list profiles`), unless `options` says what it is.
        options: Options of `ackclock link`, such as `("1mbit", "8mbit", "--rtt", "300ms")`.
    """

    def __init__(
        self,
        image: str,
        *,
        command: str | Sequence[str],
        publish: int,
        profile: str = "3g",
        options: Sequence[str] = (),
    ) -> None:
        self.port, self.token = publish, secrets.token_hex(16)
        super().__init__(
            image,
            cap_add=["SYS_ADMIN", "NET_ADMIN"],
            devices=["/dev/net/tun"],
            security_opt=["apparmor=unconfined"],
        )
        self.with_command(shlex.join(arguments(command, publish, options or ("--profile", profile))))
        self.with_env("ACKCLOCK_TOKEN", self.token)
        self.with_exposed_ports(publish)

    def address(self) -> str:
        """Address of the service on this machine, `host:port`; connections cross the link."""
        return f"{self.get_container_host_ip()}:{self.get_exposed_port(self.port)}"

    @property
    def link(self) -> Link:
        """The link, asked by `curl` in the container."""
        return _InContainer(self)


class _InContainer(Link):
    """Asks a link from inside its container, because the control is at a loopback address."""

    def __init__(self, container: LinkContainer) -> None:
        super().__init__(f"http://127.0.0.1:{CONTROL}", container.token)
        self._container = container

    def ask(self, method: str, path: str, body: object = None) -> object:
        words = ["curl", "--silent", "--show-error", "--request", method, self.url + path]
        words += ["--header", f"Authorization: Bearer {self.token}", "--header", "Content-Type: application/json"]
        if body is not None:
            words += ["--data", json.dumps(body)]
        status, output = self._container.exec(words)
        if status != 0:
            raise RuntimeError(f"{method} {path}: {output.decode(errors='replace').strip()}")
        said = json.loads(output)
        if isinstance(said, dict) and "error" in said:
            raise RuntimeError(f"{method} {path}: {said['error']}")
        return said
