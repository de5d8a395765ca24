#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Includes point down only. The order of the layers is CLEAVE_LAYERS in runtime/CMakeLists.txt, bottom first; a layer may
# include itself, layers before it, and public headers. Above all of them stand tools/; beside them:
#   backends/X   may include device/, tensor/, base/ and their own files
#   include/     only each other (or the C library)
#   samples/     only public headers, and not as files of this tree: <cleave/...> or "cleave/..."
# Passes of the planner, the rows of runtime/plan/passes.def, do not know each other: only the pipeline calls them, none reads another's
# notes, and no header but those in `shared` is included by two.
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

# Nobody looks inside the folder of helper processes.
if [ -n "$files" ]; then # shellcheck disable=SC2086
    grep -n '#include "device/helpers/internal.h"' $files | grep -v '^runtime/device/helpers/' || true
fi >"${TMPDIR:-/tmp}/lint-inside.$$"
tell_all "device/helpers/internal.h is of its own folder only" <"${TMPDIR:-/tmp}/lint-inside.$$"
rm -f "${TMPDIR:-/tmp}/lint-inside.$$"

shared='ir.h index.h passes.h plan.h updates.h variants.h shared/shared.h'
passes=$(sed -n 's/^CLV__PASS(\([a-z_]*\)[,)].*/\1/p' runtime/plan/passes.def 2>/dev/null || true)
for pass in $passes; do
    for file in runtime/plan/"$pass".c runtime/plan/*/"$pass".c; do
        [ -e "$file" ] || continue
        sed -n 's|^#include "plan/\([^"]*\)".*|\1|p' "$file" | while IFS= read -r header; do
            case " $shared " in *" $header "*) continue ;; esac
            echo "$header $file"
        done
        grep -n -H "clv__pass_[a-z_]*" "$file" | grep -v "clv__pass_\($pass\|key\)\>" | sed 's/^/call /' || true
        grep -n -H "clv__note[a-z_]*(.*CLV__PASS_" "$file" | grep -v "CLV__PASS_$pass\>" | sed 's/^/note /' || true
    done
done | sort | awk '
    $1 == "call" { print substr($0, 6) "   <- a pass calls another: only the pipeline does"; next }
    $1 == "note" { print substr($0, 6) "   <- notes of another pass: ask it by its row"; next }
    $1 == last { print $2 ": includes plan/" $1 " as " who " does   <- passes share no header of their own" }
    { last = $1; who = $2 }' >"${TMPDIR:-/tmp}/lint-passes.$$"
tell_all "passes do not know each other" <"${TMPDIR:-/tmp}/lint-passes.$$"
rm -f "${TMPDIR:-/tmp}/lint-passes.$$"
finish
