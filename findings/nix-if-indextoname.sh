#!/bin/sh
# Guess:   For an index that no interface has, nix::net::if_::if_indextoname is Err(ENXIO), as the C function returns
#          NULL with that errno.
# Found:   It never fails: it returns an empty name.
# Version: nix 0.31.3.
# Source:  the program below; the pointer is given to Errno::result, whose sentinel for a pointer is -1, not NULL.
set -eu
command -v cargo >/dev/null || { echo "skipped: cargo is needed"; exit 77; }
guess="guess: if_indextoname(4000000000) is Err(ENXIO)"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/src"
cat > "$folder/Cargo.toml" << 'END'
[package]
name = "index"
version = "0.0.0"
edition = "2021"
[dependencies]
nix = { version = "=0.31.3", features = ["net"] }
END
cat > "$folder/src/main.rs" << 'END'
fn main() {
    println!("if_indextoname(4000000000) = {:?}", nix::net::if_::if_indextoname(4_000_000_000));
    println!("if_nametoindex(\"nosuch0\") = {:?}", nix::net::if_::if_nametoindex("nosuch0"));
}
END
seen=$(cd "$folder" && cargo run --quiet 2>/dev/null)
echo "$guess"
echo "version: nix 0.31.3, $(uname -s) $(uname -m)"
echo "seen: $seen"
[ "$(echo "$seen" | head -n 1)" = 'if_indextoname(4000000000) = Ok("")' ]
