#!/bin/sh
# deb.sh COMMAND FOLDER [ARCH]: makes FOLDER/ackclock_VERSION_ARCH.deb of the command at COMMAND, best one without shared
# libraries. ARCH is Debian's name of the architecture, by default that of this machine.
set -eu
[ $# -eq 2 ] || [ $# -eq 3 ] || { echo "usage: $0 COMMAND FOLDER [ARCH]" >&2; exit 2; }
command -v dpkg-deb >/dev/null || { echo "dpkg-deb is missing: sudo apt install dpkg" >&2; exit 1; }
here=$(cd "$(dirname "$0")" && pwd)
command=$1
folder=$2
version=$("$here/version.sh")
architecture=${3:-$(dpkg --print-architecture)}
root=$(mktemp -d)
chmod 755 "$root"
trap 'rm -rf "$root"' EXIT

install -D -m 755 "$command" "$root/usr/bin/ackclock"
install -D -m 644 "$here/ackclock-box.service" "$root/usr/lib/systemd/system/ackclock-box.service"
install -D -m 640 "$here/box.toml" "$root/etc/ackclock/box.toml"
install -D -m 644 "$here/../LICENSE-MIT" "$root/usr/share/doc/ackclock/copyright"
mkdir -p "$root/DEBIAN"
echo /etc/ackclock/box.toml >"$root/DEBIAN/conffiles"
cat >"$root/DEBIAN/control" <<END
Package: ackclock
Version: $version
Architecture: $architecture
Maintainer: ackclock contributors
Section: net
Priority: optional
Description: TCP over radio links: simulate, emulate, and regulate real links
 The service ackclock-box measures the queue of a radio link, and can shorten it.
 It is neither enabled nor started by the installation.
END
cat >"$root/DEBIAN/postinst" <<'END'
#!/bin/sh
set -e
if [ "$1" = configure ] && [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then
    systemctl daemon-reload
fi
END
cat >"$root/DEBIAN/prerm" <<'END'
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -z "$DPKG_ROOT" ]; then
    if [ -d /run/systemd/system ]; then
        systemctl disable --now ackclock-box.service || true
    fi
    # What a killed box left in the kernel.
    for pins in /sys/fs/bpf/ackclock/*:*; do
        [ -d "$pins" ] || continue
        interface=${pins##*/}
        /usr/bin/ackclock box stop "${interface%:*}" || true
    done
fi
END
cat >"$root/DEBIAN/postrm" <<'END'
#!/bin/sh
set -e
if [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
fi
if [ "$1" = purge ]; then
    # Files that the administrator put beside the configuration, such as the list of subscribers, are the package's too.
    rm -rf "$DPKG_ROOT/etc/ackclock"
    # Links of `ackclock link` share this folder, so only an empty one goes.
    [ -n "$DPKG_ROOT" ] || rmdir --ignore-fail-on-non-empty /run/ackclock 2>/dev/null || true
fi
END
chmod 755 "$root/DEBIAN/postinst" "$root/DEBIAN/prerm" "$root/DEBIAN/postrm"
mkdir -p "$folder"
dpkg-deb --root-owner-group ${DEB_COMPRESSION:+-Z"$DEB_COMPRESSION"} --build "$root" "$folder/ackclock_${version}_$architecture.deb"
