#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints RESULTS.md, made of results.tsv and ranks.tsv. After a new row: tests/bench/page.sh >tests/bench/RESULTS.md
set -eu
cd "$(dirname "$0")"

# table FILE : a page's table of tab-separated values, the first line being its head.
table() {
    awk -F'\t' '
        NR == 1 { n = NF }
        NF != n { print FILENAME ":" NR ": " NF " cells, not " n >"/dev/stderr"; wrong = 1 }
        {
            gsub(/\|/, "\\|")
            line = "|"
            for (i = 1; i <= NF; i++) line = line " " $i " |"
            gsub(/ +\|/, " |", line)
            print line
            if (NR == 1) { line = "|"; for (i = 1; i <= n; i++) line = line "---|"; print line }
        }
        END { exit wrong }' "$1"
}

cat <<'END'
# Measured

This page is made by `page.sh`; the data are `results.tsv` and `ranks.tsv`. Each row says what was run, on
what, and how often. Times drift with the machine: only rows of one run may be compared.

END
table results.tsv
cat <<'END'

The rows of 2026-11-20 that do not say idle were measured on a machine busy with other work, each command under
`chrt -r 5` (real-time priority), two rounds in turn; in parentheses the single rounds' ratios. PyTorch 1.13's
products were not measured: no OpenBLAS was installed, which `bench-pytorch.py` now says.

## Where ranks choose another variant than time does

2026-11-21, the same machine, busy: `chrt -r 5 cleave tune --device D --model M --seconds 12` (20 for llvmpipe).
Each use's variants were timed one after another, the median of up to seven runs; a gain below 5 % does not
count. "Of the time" is what the uses that were timed would take less together, weighted by how often the
model has them.

END
table ranks.tsv
cat <<'END'

On PoCL ranks are right to within the noise. llvmpipe makes vector lanes of work-items, as a GPU does: explicit
vectors in one work-item leave lanes idle, while its ranks are those of a CPU. A native vector width of 1
tells such drivers apart. The uses that were timed are a small part of a step there: products and
convolutions have one variant (a step of gpt takes 50 s, the uses above 1.8 s). So tuning is worth 1 s of 50
until those have another.
END
