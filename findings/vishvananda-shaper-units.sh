#!/bin/bash
# Guess:   In the Go package vishvananda/netlink, `Tbf.Rate` and `HtbClassAttrs.Rate` have one unit, `Buffer` of both is in
#          bytes, and a class that is read back has the numbers it was made with.
# Found:   `Tbf.Rate` is in byte/s and `HtbClassAttrs.Rate` in bit/s: the same number is a shaper eight times as fast.
#          `Tbf.Buffer` is in ticks of 64 ns at the rate of the filter, so 15400 is a bucket of 985 bytes at 8 Mbit/s,
#          less than a packet; for HTB it is in bytes. A class that is read back has its rate in byte/s, its buffer in ticks.
# Version: github.com/vishvananda/netlink 1.3.0, iproute2 6.1.
# Source:  a filter and a class with the same numbers, as tc shows them; needs root.
set -euo pipefail
[ "$(id -u)" = 0 ] && command -v go ip tc unshare >/dev/null || { echo "skipped: root, go and iproute2 are needed"; exit 77; }
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
cat >main.go <<'CODE'
package main

import (
	"fmt"
	"os"
	"os/exec"

	"github.com/vishvananda/netlink"
)

const rate, buffer, limit = 1_000_000, 15400, 100_000

func check(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(77)
	}
}

func show(kind string) {
	shown, err := exec.Command("tc", kind, "show", "dev", "wire0").Output()
	check(err)
	fmt.Print(string(shown))
}

func main() {
	link, err := netlink.LinkByName("wire0")
	check(err)
	index, handle := link.Attrs().Index, netlink.MakeHandle(1, 0)
	root := netlink.QdiscAttrs{LinkIndex: index, Handle: handle, Parent: netlink.HANDLE_ROOT}
	filter := &netlink.Tbf{QdiscAttrs: root, Rate: rate, Limit: limit, Buffer: buffer}
	check(netlink.QdiscAdd(filter))
	show("qdisc")
	check(netlink.QdiscDel(filter))
	check(netlink.QdiscAdd(netlink.NewHtb(root)))
	class := netlink.ClassAttrs{LinkIndex: index, Parent: handle, Handle: netlink.MakeHandle(1, 1)}
	check(netlink.ClassAdd(netlink.NewHtbClass(class, netlink.HtbClassAttrs{Rate: rate, Buffer: buffer})))
	show("class")
	classes, err := netlink.ClassList(link, 0)
	check(err)
	read := classes[0].(*netlink.HtbClass)
	fmt.Printf("read back: Rate %d, Buffer %d\n", read.Rate, read.Buffer)
}
CODE
export GOFLAGS=-modcacherw
go mod init units >/dev/null 2>&1 && go get github.com/vishvananda/netlink@v1.3.0 >/dev/null 2>&1 && go build -o units . 2>/dev/null ||
    { echo "skipped: the package cannot be had"; exit 77; }
seen=$(unshare -n bash -c 'ip link add wire0 type veth peer name wire1; ip link set wire0 up; ./units') ||
    { echo "skipped: the kernel lacks tc-tbf or tc-htb: $seen"; exit 77; }
echo "seen with $(tc -V), Rate 1000000 and Buffer 15400:"
echo "$seen"
[[ $seen == *"tbf"*"rate 8Mbit burst 985b"*"htb"*"rate 1Mbit"*"burst 15400b"*"read back: Rate 125000, Buffer 1925000"* ]] ||
    { echo "changed"; exit 1; }
