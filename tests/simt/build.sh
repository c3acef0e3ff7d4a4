#!/bin/sh
# Builds the simt driver alone: tests/simt/build.sh [OUT [FLAGS...]], OUT is build-simt/libcuda-simt.so by default.
set -e
root=$(cd "$(dirname "$0")/../.." && pwd)
out=${1:-$root/build-simt/libcuda-simt.so}
[ $# -gt 0 ] && shift
mkdir -p "$(dirname "$out")"
${CC:-cc} -std=c11 -O2 -g -fPIC -shared -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes \
    -Wmissing-prototypes -Wvla -Wundef -Werror -ffp-contract=off -I"$root/src" -I"$root/tests/simt" \
    -DSIMT_SOURCE_DIR="\"$root\"" "$@" "$root"/tests/simt/*.c -o "$out.new" -lpthread -ldl
mv "$out.new" "$out"
