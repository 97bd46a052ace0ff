#!/bin/bash
# Guess:   A drop-tail queue of ns-2 with `limit_ 10` holds ten waiting packets beside the one in transmission.
# Found:   Nine wait. The packet in transmission has left the queue, but a packet that arrives is dropped once the queue
#          would then hold ten: of a burst of 20 at an idle link, ten get through and not eleven.
# Version: ns-2 2.35 (Debian ns2 2.35+dfsg-5).
# Source:  the run below.
set -euo pipefail
command -v dpkg apt-get >/dev/null || { echo "skipped: dpkg and apt-get are needed"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq ns2=2.35+dfsg-5 libotcl1 libtclcl1 libtcl8.6 libtk8.6 >/dev/null 2>&1 ||
    { echo "skipped: the packages of ns-2 2.35 cannot be had"; exit 77; }
for package in *.deb; do dpkg -x "$package" root; done
cat >burst.tcl <<'CODE'
set ns [new Simulator]
set a [$ns node]
set b [$ns node]
$ns simplex-link $a $b 80kb 10ms DropTail
$ns queue-limit $a $b 10
set from [new Agent/UDP]
$from set packetSize_ 1000
set to [new Agent/LossMonitor]
$ns attach-agent $a $from
$ns attach-agent $b $to
$ns connect $from $to
# All at once.
for {set number 0} {$number < 20} {incr number} { $ns at 1.0 "$from send 1000" }
$ns at 10.0 { puts "through: [$to set npkts_] of 20"; exit 0 }
$ns run
CODE
export LD_LIBRARY_PATH=root/usr/lib:root/usr/lib/x86_64-linux-gnu
seen=$(root/usr/bin/ns burst.tcl)
echo "ns-2 2.35, DropTail, limit_ 10, a burst of 20 packets at an idle link"
echo "$seen"
[ "$seen" = "through: 10 of 20" ] || { echo "changed"; exit 1; }
