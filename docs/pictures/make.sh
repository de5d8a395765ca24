#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The two pictures of the root's README.md, from what the tool really prints: training.svg, a training on a terminal, and page.png,
# trainings side by side on a page of `cleave report` (taken by chromium).
#
#     docs/pictures/make.sh CLEAVE [FOLDER]     FOLDER keeps the trainings' output, so that it is not made twice
#
# Run it on an idle machine: the times are in the picture.
set -eu
tool=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
folder=${2:-$(mktemp -d)}
mkdir -p "$folder"
cd "$folder"

training="train fashion-mnist --model cnn --save cnn.safetensors"
# shellcheck disable=SC2086  # words on purpose
[ -s training.txt ] || COLUMNS=84 "$tool" $training >training.txt 2>&1
for rate in 0.1 0.01; do
    [ -s sgd-$rate.jsonl ] || "$tool" train fashion-mnist --model mlp --optimizer sgd --lr $rate --log sgd-$rate.jsonl --quiet >/dev/null
done
"$tool" report -o page.html --log sgd-0.1.jsonl --log sgd-0.01.jsonl --quiet >/dev/null

{ echo "\$ cleave $training" && cat training.txt; } | awk '
    { gsub(/&/, "\\&amp;"); gsub(/</, "\\&lt;"); gsub(/>/, "\\&gt;"); gsub(/  /, "\\&#160;\\&#160;"); line[NR] = $0 }
    END {
        step = 17; height = NR * step + 30
        print "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"700\" height=\"" height "\" viewBox=\"0 0 700 " height "\" role=\"img\" aria-label=\"A training\">"
        print "<rect width=\"700\" height=\"" height "\" rx=\"8\" fill=\"#16191f\"/>"
        print "<g font-family=\"ui-monospace,Menlo,Consolas,DejaVu Sans Mono,monospace\" font-size=\"13\" fill=\"#d5d9e0\" xml:space=\"preserve\">"
        for (i = 1; i <= NR; i++) {
            colour = line[i] ~ /^\$/ ? " fill=\"#7fd1a0\"" : line[i] ~ /^(epoch|test accuracy)/ ? " fill=\"#8ab8ff\"" : ""
            print "<text x=\"16\" y=\"" 26 + (i - 1) * step "\"" colour ">" line[i] "</text>"
        }
        print "</g></svg>"
    }' >"$here/training.svg"

# From the head of the trainings on, as wide as a page of text.
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || { echo "no chromium: page.png is left as it is" >&2; exit 0; }
"$chromium" --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1000,500 --screenshot="$here/page.png" \
    "file://$folder/page.html" >/dev/null 2>&1
ls -l "$here/training.svg" "$here/page.png"
