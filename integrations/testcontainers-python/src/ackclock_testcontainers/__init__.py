"""A service behind an emulated link, for Testcontainers: `LinkContainer`, and `Link` to change the link."""

from ackclock_testcontainers.link import Link

__all__ = ["Link", "LinkContainer", "arguments"]


def __getattr__(name: str) -> object:
    # The client of the link works without Testcontainers.
    if name in ("LinkContainer", "arguments"):
        from ackclock_testcontainers import container

        return getattr(container, name)
    raise AttributeError(name)
