#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What .ci/run runs of what is long. What was touched runs whole, within bounds. Of the rest each part is
# drawn by a hash of the commit and the part's name: draws do not hang together, nor on how many commits
# land at once.
#
#     turns.sh number NAME     a number from NAME and $CLEAVE_TURN (any text: a commit); nothing if that is
#                              empty, and all runs
#     turns.sh shard NAME N    one of N parts, as I/N; 1/1 if all runs
#     turns.sh touched         the files that were touched, the newest first: what is not committed, then
#                              what the commits changed since $CLEAVE_BASE. Without that since a day before
#                              the last commit: a clone does not know which was tested last, and many land
#                              at once.
#     turns.sh ops <FILES      the ops in these files, a line for each file, at most MOST_OPS; on stderr
#                              what is left to be drawn
#     turns.sh tests <FILES    `later NAME` is a long test that does not run now, `whole NAME` one that runs
#                              without turns of its own. $CLEAVE_TURN is the number of the part.
#
# An op's file has a mark before its descriptor (`CLV__OP(NAME) =`). A kernel file has the stem of a file there. A file without
# ops has the ops of those that include its header; without a header those of the headers that it includes.
# elementwise.def:NAME is one row.
#
# A part of n is missed by m commits with (1 - 1/n)^m, so any of the n at most with n times that: with 200
# commits and n = 16 it is 4e-5, with n = 32 6 %, and with 400 commits 1e-4. A touched op does not wait for
# its draw.
set -eu
export LC_ALL=C
cd "$(dirname "$0")/.."
MOST_OPS=24  # that are touched; a file which holds more is common to all, and its ops are drawn
MOST_TESTS=6 # long ones that run because of what was touched, beside those that are drawn

# Long tests go by sevenths, because what a test itself does by turns goes by halves, thirds and 16ths: every
# pair of turns comes. Of scripts that run on two devices the form for the host runs always.
SEVENTHS='e2e.combined e2e.tune.cpu system.memory
e2e.micro_batches e2e.devices e2e.check_faults faults.plain
e2e.data.cpu e2e.arrays.cpu e2e.plan.cpu e2e.train.cpu system.files
e2e.gpu_day e2e.recompute e2e.advice e2e.finetune.cpu
e2e.screen e2e.pictures.cpu e2e.caches e2e.split e2e.predict e2e.endings
faults.compilers_others train_custom_op faults.checkpoints faults.placed
faults.compilers_each faults.continue faults.replicas e2e.icd e2e.best.cpu e2e.resume.cpu'
# Of these a turn makes every second fault; the other half is as long.
HALVED='system.memory system.files faults.compilers_others faults.compilers_each'

# A CRC will not do: those of two names would differ by the same bits for every commit.
number() {
    [ -n "${CLEAVE_TURN:-}" ] || return 0
    digits=$(printf '%s %s' "$CLEAVE_TURN" "$1" | sha256sum | cut -c 1-7) # 28 bits, an int of C
    echo $((0x$digits))
}

shard() { # NAME N
    drawn=$(number "$1")
    if [ -n "$drawn" ]; then echo "$((drawn % $2 + 1))/$2"; else echo 1/1; fi
}

# A commit without a parent has every file: the first one, or where a shallow clone ends.
touched() {
    git rev-parse -q --verify HEAD >/dev/null 2>&1 || return 0
    if [ -n "${CLEAVE_BASE:-}" ]; then
        base=$(git rev-parse -q --verify "$CLEAVE_BASE^{commit}") || {
            echo "turns.sh: CLEAVE_BASE '$CLEAVE_BASE' is no commit here: name one, or leave it empty" >&2
            exit 1
        }
    else
        since=$(($(git log -1 --format=%ct) - 86400))
        oldest=$(git log --first-parent --min-parents=1 --format=%H --since=$since HEAD | tail -n 1)
        base=${oldest:+$oldest^}
    fi
    {
        git diff --name-only HEAD
        git ls-files --others --exclude-standard
        [ -z "$base" ] || git log --first-parent -m --name-only --format= "$base..HEAD"
    } | awk 'NF && !seen[$0]++' | while IFS= read -r file; do
        [ "${file##*/}" != elementwise.def ] || touched_rows "$file" || continue
        echo "$file"
    done
}
# touched_rows FILE : its changed rows, with neighbours: a row has up to three lines. Fails if there are some.
touched_rows() {
    rows=$(git diff -U2 "${base:-HEAD}" -- "$1" | sed -n 's/^[+ ][A-Z_0-9]*(\([a-z_0-9]*\),.*/\1/p')
    for row in $rows; do echo "$1:$row"; done
    [ -z "$rows" ]
}

ops() {
    {
        find runtime/ops -name '*.c' -exec grep -Ho '^CLV__[A-Z_]*([a-z_0-9]*) =' {} + | sed 's/^/ops /'
        sed 's/^/row /' runtime/ops/elementwise.def
        find runtime/ops -name '*.[ch]' -exec grep -Ho '^#include "ops/.*\.h"' {} + | sort | sed 's/^/inc /'
        sed 's/^/file /'
    } | awk -v most="$MOST_OPS" '
        function stem(path) { sub(/.*\//, "", path); sub(/\..*/, "", path); return path }
        function own(s, op) { holds[s] = holds[s] " " op }
        # The ops behind a file: its own; of a header, and where it has none, those of files that include it.
        function behind(s, header,    list, i, n, t, m, j, up) {
            list = holds[s]
            if (list != "" && !header) return list
            n = split(includers[s], t, " ")
            for (i = 1; i <= n; i++) list = list (t[i] in holds ? holds[t[i]] : above(t[i]))
            return list != "" ? list : above(s)
        }
        function above(s,    list, i, n, t) {
            n = split(includes[s], t, " ")
            for (i = 1; i <= n; i++) if (t[i] in holds) list = list holds[t[i]]
            return list
        }
        # The words of a list without those that were taken before, in `fresh`; how many there are.
        function unlike(list,    i, n, t, here, k) {
            n = split(list, t, " "); k = words = 0
            for (i = 1; i <= n; i++) {
                if (t[i] in here) continue
                here[t[i]]; words++
                if (!(t[i] in taken)) fresh[++k] = t[i]
            }
            return k
        }
        $1 == "row" && match($0, /^row [A-Z_0-9]+\([a-z_0-9]+,/) && !/^row ONNX/ {
            name = substr($0, 5, RLENGTH - 5); kind = name; sub(/\(.*/, "", kind); sub(/.*\(/, "", name)
            rows = rows " " name; is_row[name]
            if (kind ~ /^UNARY/) { pair[name] = name "_backward"; rows = rows " " pair[name] }
        }
        $1 == "ops" { split($2, part, ":"); sub(/.*\(/, "", part[2]); sub(/\)/, "", part[2]); own(stem(part[1]), part[2]) }
        $1 == "inc" {
            split($0, part, ":"); from = stem(substr(part[1], 5))
            to = part[2]; sub(/^[^"]*"/, "", to); to = stem(to)
            if (from == to) next
            includes[from] = includes[from] " " to; includers[to] = includers[to] " " from
        }
        $1 == "file" { files[++n_files] = substr($0, 6) }
        END {
            own("elementwise", rows)
            for (i = 1; i <= n_files; i++) {
                file = files[i]
                if (file !~ /^(runtime\/ops|kernels_cl)\/.*\.(c|h|cl|def)(:.*)?$/) {
                    beside += file ~ /^(runtime|backends|include)\//
                    continue
                }
                row = file ~ /:/ ? file : ""; sub(/.*:/, "", row)
                if (row != "") list = row in is_row ? row " " pair[row] : ""
                else list = behind(stem(file), file ~ /\.h$/)
                if (file ~ /\.def$/) { if (stem(file) != "elementwise") continue; list = rows }
                k = unlike(list)
                if (words == 0) without = without " " file
                else if (words > most) common = common " " file " (" words " ops)"
                else if (k && n_taken + k > most) beyond = beyond " " file
                else if (k) {
                    n_taken += k
                    for (j = 1; j <= k; j++) { taken[fresh[j]]; printf "%s%s", (j > 1 ? " " : ""), fresh[j] }
                    print ""
                }
            }
            if (common) print "common to many, left to be drawn:" common >"/dev/stderr"
            if (beyond) print "beyond the first " most " ops, left to be drawn:" beyond >"/dev/stderr"
            if (without) print "without an op of their own:" without >"/dev/stderr"
            if (beside) print beside " touched files of the library are no op'\''s" >"/dev/stderr"
        }'
}

tests() {
    [ -n "${CLEAVE_TURN:-}" ] || return 0
    { echo "$SEVENTHS" | sed 's/^/seventh /'; echo "halved $HALVED"; sed 's/^/file /'; } |
        awk -v number="$CLEAVE_TURN" -v most="$MOST_TESTS" '
        $1 == "seventh" {
            for (i = 2; i <= NF; i++) { names[++n] = $i; drawn[$i] = sevenths == number % 7 }
            sevenths++
        }
        $1 == "halved" { for (i = 2; i <= NF; i++) halved[$i] }
        $1 == "file" && $2 ~ /^tests\/[^\/]*\/.*[^d]$/ { # not .md
            split($2, part, "/"); folder[part[2]] = 1
            own = $2; sub(/^tests\//, "", own); sub(/\.[^.\/]*$/, "", own)
            if (!(own in file)) file[own] = ++n_files
        }
        # e2e.data.cpu is of e2e/data.sh, faults.compilers_each of faults/compilers.c
        function own_file(test,    at) {
            at = test; sub(/[._]/, "/", at); sub(/\.cpu$|_each$|_others$/, "", at)
            return at
        }
        END {
            # Tests of touched files, the newest first, then others of their folders, beginning anywhere.
            for (i = 1; i <= n; i++) {
                test = names[(i + number) % n + 1]; own = place = own_file(test); sub(/\/.*/, "", place)
                if (place in folder) rank[test] = own in file ? file[own] : n_files + i
            }
            while (1) {
                best = ""
                for (test in rank)
                    if (!(test in done) && !drawn[test] && (best == "" || rank[test] < rank[best])) best = test
                if (best == "" || n_wanted == most) break
                done[best]; n_wanted++
            }
            for (i = 1; i <= n; i++) {
                if (!drawn[names[i]] && !(names[i] in done)) print "later " names[i]
                else if (names[i] in halved && names[i] in rank) print "whole " names[i]
            }
        }'
}

case ${1:-} in
number) number "$2" ;;
shard) shard "$2" "$3" ;;
touched | ops | tests) "$1" ;;
*) echo "usage: turns.sh number NAME | shard NAME N | touched | ops <FILES | tests <FILES" >&2 && exit 2 ;;
esac
