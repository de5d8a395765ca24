# SPDX-License-Identifier: Apache-2.0
# What the end-to-end scripts share. Sourced, with the tool and the helper as the script's arguments.
set -u
export LC_ALL=C
cleave=$1
helper=$2
scripts=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'chmod -R u+rwx "$scratch"; rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
failures=0
device=${CLEAVE_TEST_DEVICE:-host}

fail() {
    printf 'FAILED %s\n' "$*"
    failures=$((failures + 1))
}

# expect CODE TEXT COMMAND... : the exit code, and for failures one sentence on stderr that holds TEXT, nothing on stdout.
expect() {
    expect_code=$1
    expect_text=$2
    shift 2
    "$@" >out 2>err
    expect_got=$?
    if [ "$expect_got" != "$expect_code" ]; then
        fail "exit $expect_got, not $expect_code: $*"
        head -n 5 err
        return
    fi
    [ -z "$expect_text" ] || grep -qF -- "$expect_text" err || { fail "stderr does not hold '$expect_text': $*"; head -n 5 err; }
    [ "$expect_code" = 0 ] && return
    expect_lines=$(grep -c '^cleave: ' err)
    [ "$expect_lines" = 1 ] || { fail "$expect_lines sentences instead of one: $*"; head -n 5 err; }
}

# works COMMAND... : exit 0; stdout is in `out`.
works() { expect 0 '' "$@"; }

# same WHAT A B : two texts are equal.
same() { [ "$2" = "$3" ] || fail "$1: '$2' is not '$3'"; }

# at PATH... : what stands in the JSON of `out`.
at() { "$helper" json "$@" <out || fail "the JSON has no $*"; }

# left_out REASON : what is left can be asked nowhere here. A script that says so counts as skipped (77), not as passed.
left_out() {
    [ "$failures" = 0 ] || finish
    echo "skipped: $*"
    exit 77
}
# in_part REASON : so much is not asked on this machine; the rest is. tests/skips.sh counts these, too.
in_part() { echo "skipped on this machine: $*"; }

finish() {
    [ "$failures" = 0 ] || { echo "$failures failures"; exit 1; }
    exit 0
}

# python_with MODULES FILE... : sets `python` to a python3 that has the modules, or to nothing; what it then runs finds tests/e2e's own
# safetensors module.
python_with() {
    python=
    for candidate in python3 /usr/bin/python3; do
        [ -n "$python" ] || ! "$candidate" -c "import $1" 2>/dev/null || python=$candidate
    done
    export PYTHONPATH="$scripts" PYTHONDONTWRITEBYTECODE=1
}

# examples PAGE : the page's blocks of Python that begin with the name of a file, each as that file.
examples() {
    awk '/^```/ { inside = $0 == "```python"; name = ""; next }
        inside && !name { name = /^# [a-z]+[.]py$/ ? $2 : "-" }
        inside && name != "-" { print >name }' "$1"
}

# need DEVICE : without it the script asks nothing.
need() { "$cleave" devices --json 2>/dev/null | grep -q "\"name\": \"$1\"" || left_out "there is no device '$1' here"; }
[ "$device" = host ] || need "$device"
