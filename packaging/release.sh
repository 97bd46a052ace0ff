#!/bin/bash
# release.sh FOLDER ARCHITECTURE...: builds what a release has into FOLDER. `make release` installs zig, cargo-zigbuild and
# maturin into .venv before. An architecture is x86_64 or aarch64.
set -euo pipefail
[ $# -ge 2 ] || { echo "usage: $0 FOLDER ARCHITECTURE..." >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/.."
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
version=$(packaging/version.sh)
target=${CARGO_TARGET_DIR:-target}
rm -f "$folder"/*

# Equal sources give equal files: no file has a later time than the commit. Archives of wheels know no time before 1980.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 315532800)}
export SOURCE_DATE_EPOCH
# glibc 2.17 is that of the oldest systems on which Python 3.11 wheels are usual.
glibc=2.17
# Raspberry Pi 5 has pages of 16 KiB, and other arm64 machines of 64 KiB; an allocator for smaller pages would not start.
export JEMALLOC_SYS_WITH_LG_PAGE=16

targets=()
for architecture in "$@"; do
    targets+=("$architecture-unknown-linux-musl" "$architecture-unknown-linux-gnu")
done
rustup target add "${targets[@]}"

for architecture in "$@"; do
    case $architecture in
    x86_64) debian=amd64 ;;
    aarch64) debian=arm64 ;;
    *) echo "$architecture: not x86_64 or aarch64" >&2; exit 2 ;;
    esac
    echo "== $architecture: static command"
    musl=$architecture-unknown-linux-musl
    cargo zigbuild --release --locked --target "$musl" --package ackclock-cli --features jemalloc
    command=$target/$musl/release/ackclock
    name=ackclock-$version-$architecture-linux
    staging=$(mktemp -d)
    mkdir "$staging/$name"
    install -m 755 "$command" "$staging/$name/ackclock"
    install -m 644 LICENSE-MIT LICENSE-APACHE THIRD-PARTY.txt README.md "$staging/$name"
    tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
        -C "$staging" -czf "$folder/$name.tar.gz" "$name"
    rm -rf "$staging"

    echo "== $architecture: Debian package"
    packaging/deb.sh "$command" "$folder" "$debian"

    echo "== $architecture: wheel"
    ACKCLOCK_COMMAND=$command \
        MATURIN_PEP517_ARGS="--zig --target $architecture-unknown-linux-gnu --compatibility manylinux_${glibc/./_}" \
        PYTHONPATH=python python3 -c 'import sys, build_wheel; print(build_wheel.build_wheel(sys.argv[1]))' "$folder"

    # The image takes its command from here, by the name that container engines have for the architecture.
    mkdir -p out/image
    install -m 755 "$command" "out/image/ackclock-$debian"
done

engine=$(command -v podman || command -v docker || true)
if [ -n "$engine" ] && "$engine" info >/dev/null 2>&1; then
    echo "== image"
    "$engine" build --file packaging/Containerfile --tag "ackclock:$version" out/image
    "$engine" save "ackclock:$version" | gzip -n >"$folder/ackclock-$version-image.tar.gz"
else
    echo "== image: skipped, because no container engine (podman, docker) runs here"
fi

(cd "$folder" && sha256sum -- * >SHA256SUMS.new && mv SHA256SUMS.new SHA256SUMS)
ls -l "$folder"
