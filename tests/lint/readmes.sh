#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each folder that holds files says in a README.md what lives there, and names each source in backticks: `worker.c`, `worker`, or
# as one of `cmd_*.c` or `make_NAME.py` (NAME stands for any). Folders of data for a test need none.
# A file of an op needs no line, nor a kernel file that is its twin: its descriptor says what it is.
. "$(dirname "$0")/common.sh"

# names_in FILE : words in backticks, NAME as *; a bare star names nothing.
names_in() {
    tr '\n' ' ' <"$1" | grep -o '`[^`]*`' | tr -cs 'A-Za-z0-9_.*-' '\n' | sed 's/NAME/*/' | grep '[a-z]' | sort -u
}

# is_named FILE NAME... : as it is, or but for what comes after the point.
is_named() {
    named_file=${1##*/}
    shift
    for named_pattern; do
        # shellcheck disable=SC2254  # a pattern on purpose
        case $named_file in $named_pattern) return 0 ;; esac
        [ "${named_pattern%.*}" = "${named_file%.*}" ] && return 0
    done
    return 1
}

# check_sources FOLDER : with names known from other files in $also.
check_sources() {
    sources_of=$1
    page=$1/README.md
    [ -s "$page" ] || page=$(dirname "$1")/README.md
    set -f # patterns stay patterns
    # shellcheck disable=SC2046,SC2086  # words on purpose
    set -- $(names_in "$page") $also
    set +f
    for source in "$sources_of"/*.c "$sources_of"/*.cl "$sources_of"/*.h "$sources_of"/*.def "$sources_of"/*.sh "$sources_of"/*.py; do
        [ -e "$source" ] || continue
        is_named "$source" "$@" || finding "$source: $page does not name it"
    done
}

for folder in include/cleave runtime runtime/*/ runtime/*/*/ backends backends/*/ kernels_cl kernels_cl/common tests tests/*/ samples tools \
    tools/*/ docs ort; do
    folder=${folder%/}
    [ -d "$folder" ] || continue
    find "$folder" -maxdepth 1 -type f | grep -q . || continue
    if [ "$folder" != kernels_cl/common ] && [ "$folder" != tools/package ] && [ ! -s "$folder/README.md" ]; then
        finding "$folder: no README.md"
        continue
    fi
    also=
    case $folder in
    runtime/ops*) also=$(find "$folder" -maxdepth 1 -name '*.c' -exec grep -l '^CLV__[A-Z_]*([a-z_0-9]*) =' {} + | sed 's/.*\///' || true) ;;
    kernels_cl) also=$(for twin in runtime/ops/*.c runtime/ops/*/*.c; do basename "$twin" .c; done) ;;
    esac
    check_sources "$folder"
done
for folder in tools/*/*/; do # its own page, or that of the folder it is in
    also=
    check_sources "${folder%/}"
done
finish
