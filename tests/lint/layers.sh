#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Includes point down only. The order of the layers is CLEAVE_LAYERS in runtime/CMakeLists.txt, bottom first; a layer may
# include itself, layers before it, and public headers. Above all of them stand tools/; beside them:
#   backends/X   may include device/, tensor/, base/ and their own files
#   include/     only each other (or the C library)
#   samples/     only public headers, and not as files of this tree: <cleave/...> or "cleave/..."
. "$(dirname "$0")/common.sh"

layers=$(sed -n 's/^set(CLEAVE_LAYERS \(.*\))$/\1/p' runtime/CMakeLists.txt)
[ -n "$layers" ] || { echo "runtime/CMakeLists.txt: no line 'set(CLEAVE_LAYERS ...)'"; exit 1; }

for folder in runtime/*/; do
    [ -d "$folder" ] || continue
    name=$(basename "$folder")
    case " $layers " in *" $name "*) ;; *) finding "$folder: not in CLEAVE_LAYERS of runtime/CMakeLists.txt" ;; esac
done

files=$(our_files '*.c' '*.h' '*.def' '*.cpp' | grep -E '^(include|runtime|backends|samples)/' || true)
# shellcheck disable=SC2086  # our file names hold no blanks
[ -z "$files" ] || awk -v layers="$layers" '
    BEGIN { n = split(layers, order, " "); for (i = 1; i <= n; i++) rank[order[i]] = i }
    function tell(why) { print FILENAME ":" FNR ": " $0 "   <- " why }
    /^[ \t]*#[ \t]*include[ \t]*[<"]/ {
        target = $0; sub(/^[^<"]*[<"]/, "", target); sub(/[>"].*/, "", target)
        top = target; sub(/\/.*/, "", top); if (top == target) top = ""
        split(FILENAME, part, "/"); place = part[1]; own = part[2]
        if (target ~ /\.\.\//) { tell("a path that climbs hides which layer it is"); next }
        if (target ~ /\.c$/) { tell("a source file is compiled, not included"); next }
        if (place == "include" && top in rank) tell("a public header includes the library inside")
        else if (place == "samples" && (top in rank || top == "backends")) tell("samples use public headers only")
        else if (place == "runtime" && (top == "backends" || top == "opencl" || top == "CL"))
            tell("the runtime knows backends by device/backend.h only")
        else if (place == "runtime" && top in rank && rank[top] > rank[own])
            tell("layer " own " may not include layer " top " above it")
        else if (place == "backends" && top in rank && top !~ /^(base|tensor|device)$/)
            tell("a backend may include base/, tensor/ and device/ only")
    }' $files >"${TMPDIR:-/tmp}/lint-layers.$$"
tell_all "includes point down only" <"${TMPDIR:-/tmp}/lint-layers.$$"
rm -f "${TMPDIR:-/tmp}/lint-layers.$$"
finish
