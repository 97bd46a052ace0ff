"""Runs a command as on a kernel before Linux 6.6: the kernel answers to links and queries of BPF that it knows neither.

A seccomp filter returns EINVAL for `bpf(BPF_LINK_CREATE)` and `bpf(BPF_PROG_QUERY)`, as those kernels do for tcx.
"""

import ctypes
import os
import struct
import sys

LINK_CREATE, PROG_QUERY = 28, 16
EINVAL = 22
NUMBERS = {"x86_64": 321, "aarch64": 280}
# struct seccomp_data: the system call's number at 0, its first argument at 16.
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, FAIL = 0x7FFF0000, 0x00050000 | EINVAL
PROGRAM = [
    (LOAD, 0, 0, 0),
    (EQUAL, 0, 4, NUMBERS[os.uname().machine]),
    (LOAD, 0, 0, 16),
    (EQUAL, 1, 0, LINK_CREATE),
    (EQUAL, 0, 1, PROG_QUERY),
    (RETURN, 0, 0, FAIL),
    (RETURN, 0, 0, ALLOW),
]
NO_NEW_PRIVILEGES, SECCOMP, FILTER = 38, 22, 2

code = b"".join(struct.pack("HBBI", *step) for step in PROGRAM)
steps = ctypes.create_string_buffer(code)


class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_void_p)]


libc = ctypes.CDLL(None, use_errno=True)
given = Filter(len(PROGRAM), ctypes.addressof(steps))
if libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.prctl(SECCOMP, FILTER, ctypes.byref(given)):
    sys.exit(f"seccomp: {os.strerror(ctypes.get_errno())}")
os.execvp(sys.argv[1], sys.argv[1:])
