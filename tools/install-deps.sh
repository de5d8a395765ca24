#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages that Cleave needs, and only those that are missing. The one list of them: demo.sh, test.sh
# and .ci/run all come here. Quiet, safe to repeat, and done in a few milliseconds when all is there.
#
#     tools/install-deps.sh [--tests] [--ci] [--list]
#
#     (none)    what building and running needs, an OpenCL driver for the CPU and the demo's images included
#     --tests   also what tests/ needs
#     --ci      also the other compilers, drivers and checkers of .ci/run (implies --tests)
#     --list    print the packages, install nothing
#
# CLEAVE_SKIP_DEPS=1 skips all of it, for other systems and for people who install by hand.
set -eu

# Build and run. libc6-dev and binutils come with gcc only as recommendations.
packages="gcc libc6-dev binutils cmake ninja-build pkg-config
    ocl-icd-opencl-dev opencl-headers pocl-opencl-icd libclblast-dev clinfo
    libjpeg-dev libpng-dev libwebp-dev libtiff-dev libgif-dev libjansson-dev zlib1g-dev libxxhash-dev libpcre2-dev libutf8proc-dev librandom123-dev dataset-fashion-mnist"
# Tests: the runner, a C++ compiler for the headers and the consumer project, a reader of XML, what locales are made of.
test_packages="libcmocka-dev g++ libxml2-utils locales python3-cffi python3-numpy"
# CI: MPI, a compiler's cache, another compiler and its sanitizers, two more drivers, compilers for GPUs that are not here, what makes packages, compilers and an emulator for
# other processors.
ci_packages="openmpi-bin libopenmpi-dev ccache dpkg-dev fakeroot python3-venv clang libclang-rt-14-dev mesa-opencl-icd oclgrind
    abigail-tools clang-15 libclc-15 libclc-15-dev llvm-spirv-15 spirv-tools
    gcc-aarch64-linux-gnu gcc-arm-linux-gnueabihf gcc-i686-linux-gnu qemu-user musl-tools"

list=
for argument; do
    case $argument in
    --tests) packages="$packages $test_packages" test_packages='' ;;
    --ci) packages="$packages $test_packages $ci_packages" test_packages='' ci_packages='' ;;
    --list) list=1 ;;
    --help | -h)
        sed -n '3,/^set/{/^#/s/^# \{0,1\}//p}' "$0"
        exit 0
        ;;
    *)
        echo "install-deps: unknown option '$argument' (try --help)" >&2
        exit 2
        ;;
    esac
done
# shellcheck disable=SC2086  # a list of words, split on purpose
set -- $packages

if [ -n "$list" ]; then
    printf '%s\n' "$@"
    exit 0
fi
[ "${CLEAVE_SKIP_DEPS:-0}" = 1 ] && exit 0

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "install-deps: this system has no apt-get. Install the like of these by hand, then set CLEAVE_SKIP_DEPS=1:" >&2
    echo "$*" >&2
    exit 1
fi

installed=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' 2>/dev/null | sed -n 's/^installed //p')
missing=$(printf '%s\n' "$@" | grep -vxF "$installed" || true)
[ -z "$missing" ] && exit 0
missing=$(echo "$missing" | tr '\n' ' ')
missing=${missing% }

as_root=
if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "install-deps: these packages are missing, and installing them needs root or sudo:" >&2
        echo "    apt-get install $missing" >&2
        exit 1
    fi
    as_root=sudo
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
    # env, because sudo drops the environment. The lock's timeout waits for an upgrade that runs in the background.
    $as_root env DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 \
        apt-get -qq -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@" </dev/null >"$log" 2>&1
}
echo "Installing: $missing" >&2
# Lists first: a fresh machine has none. A foreign source that fails here does not matter if the install works.
apt update || sed 's/^/install-deps: /' "$log" >&2
# shellcheck disable=SC2086
if ! apt install -y --no-install-recommends $missing; then
    sed 's/^/install-deps: /' "$log" >&2
    echo "install-deps: apt-get could not install: $missing" >&2
    exit 1
fi
