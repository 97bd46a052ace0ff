#!/bin/bash
# Guess:   `FlowControl.ReceiverWindow` of the Go package mikioh/tcpinfo is the advertised receive window.
# Found:   It is tcpi_rcv_space of Linux, a measurement of receive buffer tuning: how much was read in one RTT. It keeps its
#          value while the application does not read and the advertised window (tcpi_rcv_wnd) is 0, so it does not show a
#          slow reader. `rcv_space` of ss(8) is the same number.
# Version: mikioh/tcpinfo 30a79bb1804b (2019), Linux 6.18; tcpi_rcv_wnd exists since 6.2.
# Source:  a connection on loopback whose reader stops; linux/tcp.h.
set -euo pipefail
command -v go >/dev/null || { echo "skipped: go is needed"; exit 77; }
[ "$(uname -s)" = Linux ] || { echo "skipped: Linux is needed"; exit 77; }
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export GOPATH=$folder/path GOCACHE=$folder/cache
cat >main.go <<'CODE'
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/mikioh/tcp"
	"github.com/mikioh/tcpinfo"
	"golang.org/x/sys/unix"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	listener := must(net.Listen("tcp4", "127.0.0.1:0"))
	go func() {
		sender := must(listener.Accept())
		for {
			if _, err := sender.Write(make([]byte, 65536)); err != nil {
				return
			}
		}
	}()
	cubic := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) { unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, "cubic") })
	}}
	reader := must(cubic.Dial("tcp4", listener.Addr().String()))
	io.CopyN(io.Discard, reader, 10_000_000)
	time.Sleep(2 * time.Second)

	var option tcpinfo.Info
	var buffer [256]byte
	info := must(must(tcp.NewConn(reader)).Option(option.Level(), option.Name(), buffer[:])).(*tcpinfo.Info)
	var kernel *unix.TCPInfo
	must(reader.(*net.TCPConn).SyscallConn()).Control(func(fd uintptr) {
		kernel = must(unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO))
	})
	fmt.Printf("2 s after the reader stopped: ReceiverWindow %d, tcpi_rcv_space %d, tcpi_rcv_wnd %d\n",
		info.FlowControl.ReceiverWindow, kernel.Rcv_space, kernel.Rcv_wnd)
	if uint32(info.FlowControl.ReceiverWindow) != kernel.Rcv_space || kernel.Rcv_space < 60_000 || kernel.Rcv_wnd*4 > kernel.Rcv_space {
		os.Exit(1)
	}
}
CODE
(go mod init finding && go get github.com/mikioh/tcp@v0.0.0-20190314235350-803a9b46060c \
    github.com/mikioh/tcpinfo@v0.0.0-20190314235526-30a79bb1804b golang.org/x/sys@v0.30.0 && go build -o window .) >/dev/null 2>&1 ||
    { echo "skipped: the packages cannot be had"; exit 77; }
seen=$(./window) || { echo "changed: $seen"; exit 1; }
echo "seen on Linux $(uname -r): $seen"
