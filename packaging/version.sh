#!/bin/sh
# version.sh: prints the version of the workspace, which commands built for other machines cannot be asked.
set -eu
sed -n '/^\[workspace\.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' "$(dirname "$0")/../Cargo.toml"
