#!/bin/bash
# Guess:   TCP_USER_TIMEOUT closes a connection whose peer does not answer. A live peer that only stops reading keeps its
#          connection, because it acknowledges each window probe (RFC 9293 section 3.8.6.1).
# Found:   Linux closes it too, with ETIMEDOUT: probes of a closed window are answered, but the timeout counts from the
#          first probe and only an opened window stops it. A proxy or server that sets the option against dead phones
#          also cuts off a video player that pauses.
# Version: Linux 6.18, Python 3.
# Source:  the run below; the socket's last acknowledgement is younger than its timeout.
set -euo pipefail
command -v python3 >/dev/null || { echo "skipped: python3 is needed"; exit 77; }
[ "$(uname -s)" = Linux ] || { echo "skipped: Linux is needed"; exit 77; }
uname -sr
python3 - <<'CODE'
import select, socket, struct, sys, time

TIMEOUT_MS = 5000
with socket.create_server(("127.0.0.1", 0)) as listener:
    reader = socket.create_connection(listener.getsockname())  # stays open, reads nothing
    sender, _ = listener.accept()
    sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
    sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, TIMEOUT_MS)
    sender.setblocking(False)
    try:
        while True:
            sender.send(bytes(65536))
    except BlockingIOError:
        pass
    start, poller = time.monotonic(), select.epoll()
    poller.register(sender, 0)
    answered = 0
    while not (events := poller.poll(0.05)) and time.monotonic() < start + 30:
        # tcpi_last_ack_recv: milliseconds since the last acknowledgement.
        answered = max(answered, time.monotonic() - start - struct.unpack_from("I", sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104), 56)[0] / 1000)
    error = sender.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    print(f"closed: {bool(events)}, error {error}, after {time.monotonic() - start:.1f} s; last acknowledgement at {answered:.1f} s")
    sys.exit(0 if events and error == 110 and answered > 1 else 1)
CODE
