import sys
import types

try:
    import ackclock._core  # noqa: F401
except ImportError:
    core = types.ModuleType("ackclock._core")
    core.__dict__.update(Segment=object, Sender=object, __version__="0")
    sys.modules["ackclock._core"] = core
