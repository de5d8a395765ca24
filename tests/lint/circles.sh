#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Files of one folder do not call each other in a circle: there is a lowest one, which can be read without the others. Looked up in
# the object files of a build. Circles that stay stand in circles.txt, each with the reason. circles.sh TREE BUILD
. "$(dirname "$0")/common.sh"
build=$(cd "${2:-build/dev}" && pwd)
allowed=$root/tests/lint/circles.txt
[ -f "$allowed" ] || allowed=/dev/null

# An older build may have left objects of sources that are gone.
objects() {
    find "$build" -path '*/CMakeFiles/cleave_*.dir/*' -name '*.c.o' | sort | while IFS= read -r object; do
        source=${object##*.dir/}
        for folder in runtime backends tools; do
            [ ! -e "$folder/${source%.o}" ] || echo "$object"
        done
    done
}
objects | xargs nm -A -P 2>/dev/null | awk -v allowed="$allowed" '
    function pattern(glob) { gsub(/\./, "\\.", glob); gsub(/\*/, ".*", glob); return "^" glob "$" }
    BEGIN {
        while ((getline line <allowed) > 0) {
            if (line ~ /^#/ || split(line, word, " ") < 3) continue
            n_allowed++; from_allowed[n_allowed] = pattern(word[1]); to_allowed[n_allowed] = pattern(word[2])
        }
    }
    {
        file = $1; sub(/^.*\.dir\//, "", file); sub(/\.o:.*$/, "", file)
        if ($3 == "U") { n++; caller[n] = file; called[n] = $2 }
        else if ($3 ~ /^[TDRBVW]$/) home[$2] = file
    }
    END {
        for (i = 1; i <= n; i++) {
            to = home[called[i]]; from = caller[i]
            one = from; two = to; sub(/\/.*/, "", one); sub(/\/.*/, "", two)
            if (to == "" || to == from || one != two || one == from) continue
            skip = 0
            for (k = 1; k <= n_allowed; k++) if (from ~ from_allowed[k] && to ~ to_allowed[k]) skip = 1
            if (!skip) edge[from " " to] = called[i]
        }
        do { # whoever calls nobody, or is called by nobody, is in no circle
            changed = 0; split("", calls); split("", is_called)
            for (e in edge) { split(e, end, " "); calls[end[1]] = 1; is_called[end[2]] = 1 }
            for (e in edge) {
                split(e, end, " ")
                if (!(end[2] in calls) || !(end[1] in is_called)) { delete edge[e]; changed = 1 }
            }
        } while (changed)
        for (e in edge) { split(e, end, " "); print end[1] " calls " edge[e] " of " end[2] }
    }' | sort >"${TMPDIR:-/tmp}/lint-circles.$$"
tell_all "files of a folder call each other in a circle: break it, or write the reason into circles.txt" \
    <"${TMPDIR:-/tmp}/lint-circles.$$"
rm -f "${TMPDIR:-/tmp}/lint-circles.$$"
finish
