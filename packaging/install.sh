#!/bin/sh
# install.sh VERSION FOLDER: installs the static command of a release into FOLDER. VERSION is a tag (v0.1.0) or `latest`.
# ACKCLOCK_RELEASES is the address of the releases; its default is that of the project.
set -eu
[ $# -eq 2 ] || { echo "usage: $0 VERSION FOLDER" >&2; exit 2; }
tag=$1 folder=$2
releases=${ACKCLOCK_RELEASES:-https://github.com/ackclock/ackclock/releases}
[ "$(uname -s)" = Linux ] || { echo "links need Linux; this is $(uname -s)" >&2; exit 1; }
architecture=$(uname -m)
case $architecture in
arm64) architecture=aarch64 ;;
x86_64 | aarch64) ;;
*) echo "there are binaries for x86_64 and aarch64, and none for $architecture: build from source" >&2; exit 1 ;;
esac
case $tag in
latest) files=$releases/latest/download ;;
*) files=$releases/download/$tag ;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fetch() { curl --fail --silent --show-error --location --retry 3 --output "$work/$1" "$files/$1"; }
fetch SHA256SUMS
archive=$(sed -n "s/^[0-9a-f]*  \\(ackclock-[^ ]*-$architecture-linux\\.tar\\.gz\\)$/\\1/p" "$work/SHA256SUMS")
[ -n "$archive" ] || { echo "$files/SHA256SUMS names no binary for $architecture" >&2; exit 1; }
fetch "$archive"
(cd "$work" && grep -F "  $archive" SHA256SUMS | sha256sum --check --quiet -)
mkdir -p "$folder"
tar -xzf "$work/$archive" -C "$work"
install -m 755 "$work/${archive%.tar.gz}/ackclock" "$folder/ackclock"
"$folder/ackclock" --version
