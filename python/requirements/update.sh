#!/bin/sh
# Resolve the ranges of pyproject.toml again and rewrite the pinned files beside this script.
set -eu
cd "$(dirname "$0")/../.."
pin() { # pin FILE [options of `uv pip compile`]: every file keeps to the versions of run.txt
    file=python/requirements/$1; shift
    uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
        --no-emit-index-url --no-emit-find-links "$@" --output-file "$file" pyproject.toml
}
pin run.txt
pin dev.txt --extra dev --constraint python/requirements/run.txt
pin release.txt --extra release --constraint python/requirements/run.txt
pin docs.txt --extra docs --constraint python/requirements/run.txt
