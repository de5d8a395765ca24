#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Documentation tells the truth: links lead to files that exist; in code blocks, scripts exist and can be run, presets exist,
# and every `cleave` command and option is one that `--help` knows. usage: docs.sh ROOT [path of the cleave tool]
. "$(dirname "$0")/common.sh"
cleave=${2:-}
[ -z "$cleave" ] || [ -x "$cleave" ] || { echo "no tool at $cleave"; exit 1; }

blocks=$(mktemp)
helps=$(mktemp -d) # a file for each command, made once
trap 'rm -rf "$blocks" "$helps"' EXIT

pages=$(our_files '*.md')
# shellcheck disable=SC2013  # words, not lines: our file names hold no blanks
for page in $pages; do
    # Links to files: [text](path), outside of blocks of code, not to the net and not within the page.
    for link in $(awk '/^[ \t]*```/ { inside = !inside } !inside' "$page" | grep -o '](\([^)#]*\)' | sed 's/^](//' | grep -v '^[a-z]*:' || true); do
        [ -e "$(dirname "$page")/$link" ] || finding "$page: links to $link, which is not there"
    done
done
# Lines of blocks marked sh or console, continuation lines joined: FILE:LINE:command
# shellcheck disable=SC2086
[ -z "$pages" ] || awk '
    FNR == 1 { inside = 0; held = "" }
    /^[ \t]*```/ { if (inside) inside = 0; else inside = ($0 ~ /```(sh|console|bash)/); next }
    !inside { next }
    { line = $0; sub(/^[ \t]*[$][ \t]+/, "", line); sub(/[ \t]#.*/, "", line)
      if (line ~ /\\$/) { sub(/\\$/, "", line); held = held line; next }
      print FILENAME ":" FNR ":" held line; held = "" }' $pages >"$blocks"

while IFS= read -r entry; do
    place=${entry%%:*}:$(echo "$entry" | cut -d: -f2)
    command=$(echo "$entry" | cut -d: -f3- | sed -e 's/[|;&<>()].*//' -e 's/^[ ]*//')
    # Leading assignments, sudo, and checkers in front of the command.
    while :; do
        case $command in
        [A-Z_]*=*\ * | sudo\ * | oclgrind\ *) command=${command#* } ;;
        *) break ;;
        esac
    done
    # shellcheck disable=SC2086  # words of a command line
    set -- $command
    [ $# -gt 0 ] || continue
    case $1 in
    tools/* | ./tools/* | .ci/* | tests/*)
        [ -x "$1" ] || finding "$place: $1 is not there, or cannot be run"
        ;;
    bash | sh)
        [ $# -lt 2 ] || [ -e "$2" ] || finding "$place: $2 is not there"
        ;;
    cmake | ctest)
        while [ $# -gt 0 ]; do
            case $1 in
            --preset) preset=${2:-} ;;
            --preset=*) preset=${1#*=} ;;
            *) preset= ;;
            esac
            [ -z "$preset" ] || grep -q "\"name\": \"$preset\"" CMakePresets.json ||
                finding "$place: there is no preset $preset"
            shift
        done
        ;;
    cleave | */cleave)
        [ -n "$cleave" ] || continue
        shift
        subcommand=${1:-}
        case $subcommand in
        '' | -*) help=$helps/overview set_help=--help ;;
        *) help=$helps/$subcommand set_help="$subcommand --help all" ;;
        esac
        # shellcheck disable=SC2086  # words on purpose
        [ -e "$help" ] || "$cleave" $set_help >"$help" 2>&1 </dev/null || rm -f "$help"
        [ -e "$help" ] || {
            finding "$place: cleave $set_help fails"
            continue
        }
        for word; do
            word=${word%%=*}
            case $word in
            --*) grep -q -e "$word\([^a-z-]\|\$\)" "$help" || finding "$place: cleave $subcommand has no option $word" ;;
            esac
        done
        ;;
    esac
done <"$blocks"
finish
