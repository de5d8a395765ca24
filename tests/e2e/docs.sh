#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The pages of docs/ do what they say: each block that begins with ```sh run is run, line by line, in a folder of its page's own with small
# made-up data, and its Python too. Commands stand as in the page; so that they take seconds, what a reader leaves to defaults is made small here (see `cleave`).
# docs/command-line.md is what the tool prints.
pages=$(cd "$(dirname "$0")/../../docs" && pwd)
pictures=$(cd "$(dirname "$0")/../golden/images" && pwd)
. "$(dirname "$0")/common.sh"

tool=$cleave
# lacks OPTION... : is none of these among the words of the command?
lacks() {
    for lacks_option; do
        case " $words " in *" $lacks_option "*) return 1 ;; esac
    done
}
# cleave WORDS... : the tool on the host, with few samples and steps, and small pictures and texts, where the words do not say otherwise.
cleave() {
    words=$*
    command=${1:-}
    case $command in train | eval | run | generate | bench | plan | check)
        lacks --device --place --replicas --list && set -- "$@" --device host ;;
    esac
    [ "$command" = train ] && lacks --steps --epochs --patience && set -- "$@" --steps 2
    case $command in train | eval | run) lacks --batch && set -- "$@" --batch 5 ;; esac
    [ "$command" = generate ] && lacks --length && set -- "$@" --length 8
    case $words in
    *' images '*) lacks --image-size && set -- "$@" --image-size 16 ;;
    'train text '*) lacks --context && set -- "$@" --context 8 ;;
    esac
    case $words in 'train images '*) lacks --model && set -- "$@" --model linear ;; esac
    "$tool" "$@"
}

# python3 WORDS... : the examples in Python, where there is what they need.
python_with torch,PIL
[ -n "$python" ] || in_part "there is no python3 with torch and PIL: the examples of docs/pytorch.md"
python3() { [ -z "$python" ] || "$python" "$@"; }

# data : what the pages speak of.
data() {
    awk 'BEGIN { print "area,rooms,year,town,price"
        for (i = 0; i < 60; i++) { a = 40 + i * 7 % 90; r = 1 + i % 5; print a "," r "," 1950 + i "," (i % 3 ? "Ulm" : "Bonn") "," 1000 * (2 * a + 15 * r) } }' >houses.csv
    cut -d, -f1-4 houses.csv | head -n 9 >rows.csv
    mkdir fashion
    "$helper" images 12 x.npy && "$helper" labels 12 y.npy && "$helper" labels 12 y5.npy %5+0 &&
        "$helper" fields 40 data.npz && "$helper" fields 12 more.npz && "$helper" idx fashion 12 0=0 || fail "no data"
    export CLEAVE_DATA_DIR=$PWD/fashion
    for part in train val; do
        mkdir -p pets/$part/cat pets/$part/dog
        cp "$pictures"/jpeg/*.[jJ]* pets/$part/cat && cp "$pictures"/png/*.[pP]* pets/$part/dog || fail "no pictures"
    done
    printf 'file,furry,young\ntrain/cat/color.jpg,1,0\ntrain/cat/grey.jpg,1,1\ntrain/dog/color.png,0,1\ntrain/dog/wide.png,0,0\n' >train.csv
    printf 'file,furry,young\nval/cat/color.jpg,1,0\nval/dog/wide.png,0,0\n' >val.csv
    i=0
    while [ $i -lt 40 ]; do echo "In the beginning were $i words, and the words were many."; i=$((i + 1)); done >book.txt
}

# lines PAGE : the commands of its blocks that are to be run, as NUMBER:command. Those that want what the examples in Python make have a word more.
lines() { awk -v python="$python" '/^```/ { inside = $0 == "```sh run" || (python && $0 == "```sh run python"); next } inside && NF { print FNR ":" $0 }' "$1"; }

for page in "$pages"/*.md; do
    name=$(basename "$page" .md)
    if [ "$name" != README ] && [ "$name" != design ] && [ "$name" != glossary ]; then
        sed -n 3p "$page" | grep -q '^You ' || fail "$name.md does not begin with what one wants to do"
    fi
    lines "$page" >"$scratch/lines"
    [ -s "$scratch/lines" ] || continue
    mkdir "$scratch/$name" && cd "$scratch/$name" && data
    examples "$page"
    "$tool" train images pets/train --model linear --image-size 4 --device host --steps 1 --quiet >"$scratch/out" 2>&1 ||
        grep -v 'images' "$scratch/lines" >"$scratch/without" && mv "$scratch/without" "$scratch/lines" 2>/dev/null
    while IFS= read -r line <&3; do
        command=${line#*:}
        # shellcheck disable=SC2294  # a line of shell is what the page holds
        (eval "$command") >"$scratch/out" 2>"$scratch/err" </dev/null ||
            fail "docs/$name.md:${line%%:*}: '$command' fails: $(tail -n 2 "$scratch/err")"
    done 3<"$scratch/lines"
    printf '%3d commands of docs/%s.md\n' "$(grep -c '' "$scratch/lines")" "$name"
    cd "$scratch" || exit 1
done

# scripts, for machines that are not here, are shell at least
for page in "$pages"/*.md; do
    awk '/^```/ { inside = $0 == "```bash"; next } inside' "$page" >script
    [ -s script ] || continue
    scripts_seen=yes
    bash -n script 2>err || fail "$(basename "$page"): $(cat err)"
done
[ -n "${scripts_seen:-}" ] || fail "no script in a block of \`\`\`bash"

"$tool" --markdown >page || fail "--markdown fails"
cmp -s page "$pages/command-line.md" || fail "docs/command-line.md is old; make it anew: build/dev/cleave --markdown >docs/command-line.md"
finish
