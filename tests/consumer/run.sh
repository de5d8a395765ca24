#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs a build into a folder of its own, then builds and runs the consumer project against it, found in every way.
# usage: run.sh BUILD_FOLDER
set -eu
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/prefix" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
libraries=$(dirname "$(find "$work/prefix" -name libcleave.so)")
export PKG_CONFIG_PATH="$libraries/pkgconfig"
# Its headers include no other library's.
for flag in $(pkg-config --cflags cleave); do
    case $flag in -I*) [ -d "${flag#-I}/cleave" ] || { echo "pkg-config --cflags names a folder that is not ours: $flag"; exit 1; } ;; esac
done
pkg-config --static --libs cleave | grep -q -e -ljansson || { echo "pkg-config --static --libs lacks what the library needs"; exit 1; }
for use in package static pkgconfig; do
    # The static library's own needs may bring along C++ libraries, shared ones; nothing else is asked of the consumer.
    cmake -G Ninja -S "$here" -B "$work/$use" -DCONSUMER_USE=$use -DCMAKE_PREFIX_PATH="$work/prefix" \
        -DCMAKE_C_COMPILER="${CC:-cc}" -DCMAKE_CXX_COMPILER="${CXX:-c++}" -DCMAKE_BUILD_TYPE=Debug >"$work/log" 2>&1 &&
        cmake --build "$work/$use" -j2 >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
    for program in consumer_c99 consumer_cxx; do
        LD_LIBRARY_PATH="$libraries" "$work/$use/$program"
    done
done
# Moved elsewhere, the installed package still works: no absolute path is written into it.
if grep -rn "$work" "$libraries/cmake" | grep -v '^Binary'; then
    echo "the installed package names absolute paths"
    exit 1
fi
# Our soname, and not the linker's idea of one.
find "$libraries" -name 'libcleave.so.*.*' | grep -q . || { echo "no versioned soname"; exit 1; }
