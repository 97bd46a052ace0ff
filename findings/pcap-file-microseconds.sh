#!/bin/sh
# Guess:   In the Rust crate pcap-file, `EnhancedPacketBlock::timestamp` is a Duration since 1970, in pcapng as in pcap.
# Found:   It takes every time of a pcapng file as a count of nanoseconds and ignores if_tsresol. Without that option, as
#          many tools write it, the unit is a microsecond: intervals are 1000 times too short, rates 1000 times too high.
# Version: pcap-file 2.0.0.
# Source:  section 4.2 of the pcapng specification (draft-ietf-opsawg-pcapng), and the file below: two packets in 0.1 s.
set -eu
command -v cargo >/dev/null && command -v python3 >/dev/null || { echo "skipped: cargo and python3 are needed"; exit 77; }
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 - <<'CODE'
import struct

def block(kind, body):
    return struct.pack("<II", kind, 12 + len(body)) + body + struct.pack("<I", 12 + len(body))
with open("two.pcapng", "wb") as file:
    file.write(block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)) + block(1, struct.pack("<HHI", 101, 0, 65535)))
    for time in (1_700_000_000_100_000, 1_700_000_000_200_000):
        file.write(block(6, struct.pack("<IIIII", 0, time >> 32, time & 0xFFFFFFFF, 20, 20) + bytes([0x45]) + bytes(19)))
CODE
mkdir src
cat >Cargo.toml <<'END'
[package]
name = "times"
version = "0.0.0"
edition = "2021"
[dependencies]
pcap-file = "=2.0.0"
END
cat >src/main.rs <<'END'
use pcap_file::pcapng::{Block, PcapNgReader};

fn main() {
    let mut reader = PcapNgReader::new(std::fs::File::open("two.pcapng").unwrap()).unwrap();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap() {
            println!("{:?}", packet.timestamp);
        }
    }
}
END
seen=$(CARGO_TARGET_DIR=target cargo run --quiet 2>build.log) || { echo "skipped: pcap-file 2.0.0 cannot be built"; exit 77; }
echo "in the file: 1700000000.1s 1700000000.2s"
echo "seen:" $seen
[ "$(echo $seen)" = "1700000.0001s 1700000.0002s" ] || { echo "changed"; exit 1; }
