#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# OpenCL drivers that are no Debian packages of this machine, in a folder of the user's own; nothing of the system is changed.
#
#     fetch.sh intel         Intel's runtime for CPUs, from PyPI (needs python3 with venv)
#     fetch.sh --have NAME   look only
#
# Prints the driver's folder; `vendors/` in it is for OCL_ICD_VENDORS, `lib/` for LD_LIBRARY_PATH. Exit 77 with a note on stderr
# if it cannot be had. CLEAVE_DRIVERS_DIR says where drivers are kept; default: cleave-drivers in the user's cache folder.
set -u
look=
[ "${1:-}" = --have ] && look=1 && shift
name=${1:?the name of a driver}
kept=${CLEAVE_DRIVERS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/cleave-drivers}
folder=$kept/$name

if [ -e "$folder/whole" ]; then
    echo "$folder"
    exit 0
fi
none() {
    echo "$name: left out: $*" >&2
    exit 77
}
[ -z "$look" ] || none "not fetched yet (tests/drivers/fetch.sh $name)"
mkdir -p "$kept" || none "cannot write to $kept"
work=$(mktemp -d "$kept/fetching.XXXXXX") || none "cannot write to $kept"
trap 'rm -rf "$work"' EXIT
log=$work.log
# tell WHAT : the last line of the log is the reason.
tell() {
    reason=$(tail -n 1 "$log" | cut -c 1-200)
    rm -f "$log"
    none "$1: $reason"
}

intel() {
    command -v python3 >/dev/null || none "there is no python3"
    python3 -m venv "$work/venv" >"$log" 2>&1 || tell "python3 -m venv"
    timeout 900 "$work/venv/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir intel-opencl-rt intel-cmplr-lib-rt \
        >"$log" 2>&1 || tell "pip install intel-opencl-rt"
    mkdir "$work/driver" "$work/driver/vendors"
    mv "$work/venv/lib" "$work/driver/lib"
    # Not its loader, not Python; of three copies of a library the one that is asked for.
    rm -rf "$work"/driver/lib/libOpenCL* "$work"/driver/lib/python* "$work"/driver/lib/icx-lto.so
    for library in "$work"/driver/lib/*.so; do
        for copy in "$library".*; do
            [ -f "$copy" ] && cmp -s "$library" "$copy" && ln -sf "${library##*/}" "$copy"
        done
    done
    [ -e "$work/driver/lib/libintelocl.so" ] || none "the package holds no libintelocl.so"
    echo "$folder/lib/libintelocl.so" >"$work/driver/vendors/intel.icd"
}

case $name in
intel) intel ;;
*) none "nobody knows this driver" ;;
esac
touch "$work/driver/whole"
rm -f "$log"
rm -rf "$folder"
mv "$work/driver" "$folder" || none "cannot write to $kept"
echo "$folder"
