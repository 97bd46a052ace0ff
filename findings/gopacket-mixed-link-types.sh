#!/bin/bash
# Guess:   pcapgo.NgReader of gopacket with its default options returns every packet of a valid pcapng file, each with the
#          number of its interface.
# Found:   It skips packets of interfaces whose link type differs from that of the first interface, without an error: of a
#          merged capture of Ethernet and a cellular or TUN interface (raw IP) it returns the Ethernet half. The option
#          WantMixedLinkType returns all.
# Version: github.com/gopacket/gopacket 1.2.0.
# Source:  a file with two interfaces, two packets of each.
set -euo pipefail
command -v go python3 >/dev/null || { echo "skipped: go and python3 are needed"; exit 77; }
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
python3 - <<'CODE'
import struct
ETHERNET, RAW_IP, START = 1, 101, 1_700_000_000_000_000
def block(kind, body):
    body += bytes(-len(body) % 4)
    return struct.pack("<II", kind, 12 + len(body)) + body + struct.pack("<I", 12 + len(body))
datagram = struct.pack(">BBHHHBBHII", 0x45, 0, 28, 1, 0, 64, 17, 0, 0x0A000001, 0x0A000002) + struct.pack(">HHHH", 5000, 5001, 8, 0)
with open("merged.pcapng", "wb") as file:
    file.write(block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)))
    for link_type in (ETHERNET, RAW_IP):
        file.write(block(1, struct.pack("<HHI", link_type, 0, 65535)))
    for number in range(4):
        data = (bytes(12) + b"\x08\x00" + datagram, datagram)[number % 2]
        time = START + number * 250_000
        file.write(block(6, struct.pack("<IIIII", number % 2, time >> 32, time & 0xFFFFFFFF, len(data), len(data)) + data))
CODE
cat >main.go <<'CODE'
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/gopacket/gopacket/pcapgo"
)

func check(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func main() {
	for _, mixed := range []bool{false, true} {
		file, err := os.Open("merged.pcapng")
		check(err)
		options := pcapgo.DefaultNgReaderOptions
		options.WantMixedLinkType = mixed
		reader, err := pcapgo.NewNgReader(file, options)
		check(err)
		fmt.Printf("mixed %v, interfaces of the packets:", mixed)
		for {
			_, info, err := reader.ReadPacketData()
			if err == io.EOF {
				break
			}
			check(err)
			fmt.Print(" ", info.InterfaceIndex)
		}
		fmt.Println()
	}
}
CODE
export GOFLAGS=-modcacherw
go mod init links >/dev/null 2>&1 && go get github.com/gopacket/gopacket/pcapgo@v1.2.0 >/dev/null 2>&1 && go build -o links . 2>/dev/null ||
    { echo "skipped: the package cannot be had"; exit 77; }
seen=$(./links)
echo "in the file, interfaces of the packets: 0 1 0 1"
echo "seen:"
echo "$seen"
[ "$seen" = "mixed false, interfaces of the packets: 0 0
mixed true, interfaces of the packets: 0 1 0 1" ] || { echo "changed"; exit 1; }
