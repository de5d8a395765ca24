#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds Cleave for other machines and another C library, and runs it: the quick check of the host device, and trainings on the host device
# whose weights must have the bits that they have here.
#
# usage: run.sh CLEAVE HELPER TARGET...     targets: aarch64 armv7 i686 musl static pocl-i386
#
# CLEAVE is the command line of this machine, HELPER tests/e2e's. What is fetched stays in $CLEAVE_DRIVERS_DIR; what is built in
# build/cross. Without a compiler, an emulator or packages a target is left out, with a note.
set -u
cleave=$(realpath "$1") helper=$(realpath "$2")
shift 2
cd "$(dirname "$0")/../.." || exit 1
tree=$PWD
kept=${CLEAVE_DRIVERS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/cleave-drivers}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export CLEAVE_CACHE_DIR="$scratch/cache"
mkdir -p "$kept" build/cross
ran=0 left_out=0 failed=0
left_out() { echo "$target: left out: $*" && left_out=$((left_out + 1)); }
# unbuilt : what the compiler said, else the end of the log.
unbuilt() { grep -m 3 -E "error: " "$scratch/log" || tail -n 5 "$scratch/log"; }
fault() { echo "$target: FAILED: $*" && failed=$((failed + 1)); }
launcher=
command -v ccache >/dev/null && launcher=-DCMAKE_C_COMPILER_LAUNCHER=ccache

# fetched FOLDER KIND... : packages as debian.sh puts them there, once.
fetched() {
    [ -e "$1/whole" ] && return
    rm -rf "$1"
    fetched_folder=$1
    shift
    "$@" >"$scratch/log" 2>&1 && touch "$fetched_folder/whole"
}
# libraries PREFIX CC : zlib, jansson and xxHash from their sources with another compiler, static.
libraries() {
    [ -e "$1/whole" ] && return
    fetched "$kept/sources" tests/cross/debian.sh source "$kept/sources" jansson zlib xxhash || return
    rm -rf "$scratch/src"
    cp -r "$kept/sources" "$scratch/src" && mkdir -p "$1/lib/pkgconfig" "$1/include" || return
    (
        set -e
        cd "$scratch/src/zlib" && CC=$2 CFLAGS="-O2 -fPIC" ./configure --static --prefix="$1" && make -j2 libz.a && make install
        cmake -G Ninja -S "$scratch/src/jansson" -B "$scratch/src/jansson-build" -DCMAKE_C_COMPILER="$2" -DJANSSON_BUILD_DOCS=OFF \
            -DJANSSON_WITHOUT_TESTS=ON -DJANSSON_EXAMPLES=OFF -DCMAKE_INSTALL_PREFIX="$1" -DCMAKE_INSTALL_LIBDIR=lib
        cmake --build "$scratch/src/jansson-build" --target install
        cd "$scratch/src/xxhash" && make -j2 CC="$2" CFLAGS="-O2 -fPIC" libxxhash.a
        cp libxxhash.a "$1/lib" && cp xxhash.h xxh3.h "$1/include"
        printf 'Name: xxhash\nDescription: hashes\nVersion: 0.8\nLibs: -L%s/lib -lxxhash\nCflags: -I%s/include\n' "$1" "$1" \
            >"$1/lib/pkgconfig/libxxhash.pc"
        cp -r /usr/include/Random123 "$1/include"
    ) >"$scratch/log" 2>&1 && touch "$1/whole"
}
# build OPTION... : the command line for this target, in build/cross/TARGET.
build() {
    cmake -G Ninja -S "$tree" -B "build/cross/$target" $launcher -DCLEAVE_OPENCL=OFF -DCLEAVE_TOKENIZERS=OFF -DCLEAVE_TESTS=OFF -DCLEAVE_WERROR=ON \
        -DCMAKE_BUILD_TYPE=Release "$@" >"$scratch/log" 2>&1 &&
        cmake --build "build/cross/$target" --target cleave_tool >>"$scratch/log" 2>&1
}
# trained FOLDER COMMAND... : the weights of 20 steps of two optimizers.
trained() {
    trained_folder=$1
    shift
    mkdir -p "$trained_folder"
    for optimizer in sgd adam; do
        "$@" train --images "$scratch/x.npy" --labels "$scratch/y.npy" --model mlp --device host --batch 4 --steps 20 --seed 1 \
            --optimizer $optimizer --quiet --save "$trained_folder/$optimizer.safetensors" >"$scratch/log" 2>&1 || return
    done
}
# runs COMMAND... : what every target must do.
runs() {
    ran=$((ran + 1))
    "$@" devices >"$scratch/log" 2>&1 || { fault "devices: $(cat "$scratch/log")"; return; }
    "$@" check --quick --device host --json >"$scratch/log" 2>&1 || { fault "check: $(tail -n 3 "$scratch/log")"; return; }
    cases=$(tr -d '\n' <"$scratch/log" | grep -o '"cases": *[0-9]*' | head -n 1)
    rm -rf "$scratch/there"
    trained "$scratch/there" "$@" || { fault "train: $(tail -n 3 "$scratch/log")"; return; }
    for weights in sgd adam; do
        cmp -s "$scratch/here/$weights.safetensors" "$scratch/there/$weights.safetensors" ||
            fault "20 steps of $weights give other bits than on this machine"
    done
    echo "$target: $(echo "$cases" | sed 's/.*: *//') cases of the check passed; weights after 20 steps: $(cksum <"$scratch/there/adam.safetensors")"
}
# checked32 : the quick check of a 32-bit PoCL, in a folder that is a system of its own. Needs a root that may mount there.
checked32() {
    root=$kept/root-i386-opencl
    command -v i686-linux-gnu-gcc >/dev/null || { left_out "there is no i686-linux-gnu-gcc"; return; }
    unshare -m mount --rbind /proc /proc 2>/dev/null || { left_out "nothing can be mounted here, and PoCL wants /proc and /sys in its root"; return; }
    fetched "$root" tests/cross/debian.sh root i386 "$root" libc6-dev libjansson-dev zlib1g-dev libxxhash-dev librandom123-dev \
        ocl-icd-opencl-dev opencl-headers pocl-opencl-icd binutils || { left_out "no packages: $(tail -n 1 "$scratch/log")"; return; }
    build -DCLEAVE_OPENCL=ON -DCLEAVE_CLBLAST=OFF -DCMAKE_TOOLCHAIN_FILE="$tree/tests/cross/toolchain.cmake" \
        -DCLEAVE_TRIPLET=i686-linux-gnu -DCLEAVE_ROOT="$root" || { fault "it does not build: $(unbuilt)"; return; }
    ran=$((ran + 1))
    shard=1/1
    [ -z "${CLEAVE_TURN:-}" ] || shard=$((CLEAVE_TURN % 8 + 1))/8
    mkdir -p "$root/tmp" "$root/proc" "$root/sys" "$root/dev" && cp "build/cross/$target/cleave" "$root/tmp/"
    # shellcheck disable=SC2016  # its own arguments
    unshare -m sh -c 'for at in proc sys dev; do mount --rbind /$at "$1/$at" || exit; done
        exec env -i HOME=/tmp PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C chroot "$1" /tmp/cleave check --quick --dtype f32 --device cpu --shard "$2"' \
        - "$root" "$shard" >"$scratch/log" 2>&1 || { fault "check: $(grep -E '^(FAILED|COULD NOT RUN)' "$scratch/log" | head -n 5) $(tail -n 3 "$scratch/log")"; return; }
    echo "$target: $(tail -n 1 "$scratch/log")"
}
# crossed TRIPLET ARCHITECTURE EMULATOR
crossed() {
    root=$kept/root-$2
    command -v "$1-gcc" >/dev/null || { left_out "there is no $1-gcc"; return; }
    [ -z "$3" ] || command -v "$3" >/dev/null || { left_out "there is no $3"; return; }
    fetched "$root" tests/cross/debian.sh root "$2" "$root" libc6-dev libjansson-dev zlib1g-dev libxxhash-dev librandom123-dev ||
        { left_out "no packages: $(tail -n 1 "$scratch/log")"; return; }
    build -DCMAKE_TOOLCHAIN_FILE="$tree/tests/cross/toolchain.cmake" -DCLEAVE_TRIPLET="$1" -DCLEAVE_ROOT="$root" ||
        { fault "it does not build: $(unbuilt)"; return; }
    if [ -n "$3" ]; then
        runs "$3" -L "$root" "build/cross/$target/cleave"
    else
        runs "$root/lib/ld-linux.so.2" --library-path "$root/lib/i386-linux-gnu:$root/usr/lib/i386-linux-gnu" "build/cross/$target/cleave"
    fi
}

"$helper" images 16 "$scratch/x.npy" && "$helper" labels 16 "$scratch/y.npy" && trained "$scratch/here" "$cleave" || exit 1
for target; do
    case $target in
    aarch64) crossed aarch64-linux-gnu arm64 qemu-aarch64 ;;
    armv7) crossed arm-linux-gnueabihf armhf qemu-arm ;;
    i686) crossed i686-linux-gnu i386 '' ;;
    pocl-i386) checked32 ;;
    static)
        if build -DCLEAVE_STATIC=ON; then
            ldd build/cross/static/cleave >/dev/null 2>&1 && fault "it needs shared libraries"
            runs build/cross/static/cleave
        else
            fault "it does not build: $(unbuilt)"
        fi
        ;;
    musl)
        command -v musl-gcc >/dev/null || { left_out "there is no musl-gcc"; continue; }
        libraries "$kept/musl" musl-gcc || { left_out "no libraries: $(tail -n 1 "$scratch/log")"; continue; }
        if PKG_CONFIG_LIBDIR="$kept/musl/lib/pkgconfig" build -DCMAKE_C_COMPILER=musl-gcc -DCLEAVE_STATIC=ON \
            -DCMAKE_C_FLAGS="-isystem $kept/musl/include"; then
            runs build/cross/musl/cleave
        else
            fault "it does not build: $(unbuilt)"
        fi
        ;;
    *) fault "nobody knows this target" ;;
    esac
done
echo "$ran targets run, $left_out left out, $failed faults"
[ $failed = 0 ]
