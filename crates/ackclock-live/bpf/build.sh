#!/bin/sh
# Compiles the program for both byte orders. The objects are under version control: only who changes the C needs clang.
set -eu
cd "$(dirname "$0")"
clang=${CLANG:-clang-14}
strip=${STRIP:-llvm-strip-14}
for order in el eb; do
    "$clang" -O2 -g -fdebug-compilation-dir=. -target "bpf$order" -mcpu=v3 -Wall -Wextra \
        -I"/usr/include/$(uname -m)-linux-gnu" -c gateway.bpf.c -o "${1:-.}/gateway.bpf$order.o"
    "$strip" -g "${1:-.}/gateway.bpf$order.o"
done
