#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every line of cases.txt: a command with a hostile file, argument or variable. It ends by itself, with the exit code that is written down;
# a failure says one sentence, which holds the text that is written down; nothing that could move a cursor or forge a line is
# printed, and no file is made that was not asked for.
#
# usage: run.sh CLEAVE HELPER [NAME...]        only these cases
#        run.sh CLEAVE HELPER --write [NAME...]  print the lines as they would have to be; read them before you keep them
set -u
export LC_ALL=C OCL_ICD_VENDORS=/nonexistent
folder=$(cd "$(dirname "$0")" && pwd)
cleave=$1 helper=$2
shift 2
write=
[ "${1:-}" = --write ] && write=1 && shift
wanted=" $* "
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/files" "$scratch/bin"
ln -s "$cleave" "$scratch/bin/cleave"
export PATH=$scratch/bin:$PATH CLEAVE_CACHE_DIR=$scratch/cache HOME=$scratch CLEAVE_DATA_DIR="$scratch/files/idx-right"
cd "$scratch/files" || exit 1
. "$folder/files.sh"
cleave train fashion-mnist --model linear --batch 2 --epochs 2 --device host --quiet --save right.safetensors --checkpoint right.checkpoint \
    --log right.jsonl >/dev/null 2>&1 || { echo "the training that makes files failed"; exit 1; }
# forged NAME FROM TO : a checkpoint with another word of the same length.
forged() { sed "s/$2/$3/" right.checkpoint >"$1.checkpoint"; }
forged step '"position.step":"2"' '"position.step":"9"'
forged batch '"batch":"2"' '"batch":"7"'
forged model '"model":"linear"' '"model":"lunear"'
forged codes '"seed":"1"' '"seed":"\x1b"'
# sealed NAME KEY=TEXT... : a checkpoint with other texts, whose checksum is right all the same: anyone can compute it.
sealed() {
    sealed_as=$1
    shift
    "$helper" forge right.checkpoint "sealed-$sealed_as.checkpoint" "$@" || exit 1
}
most=9223372036854775807
sealed same
sealed losses position.step=3 position.index=1 position.loss_count=$most
sealed losses-none position.loss_count=1
sealed step position.step=$most
sealed epoch position.epoch=$most
sealed index position.index=$most
sealed all position.step=$most position.epoch=$most position.index=0
sealed negative position.step=-$most position.epoch=-$most
sealed word position.step=two
sealed empty position.step=
sealed sum position.loss_sum=nan position.train_loss=nan
sealed hex position.loss_sum=0x1p9999
sealed model "model=$(printf '\033[2J\r%0500d' 0)"
sealed freeze "freeze=$(printf '\033]0;x\007')"
sealed seed seed=18446744073709551616
sealed batch batch=0
sealed optimizer optimizer.kind=99
sealed lr lr=nan
sealed codes "position.epoch=$(printf '\302\233\342\200\256')"
head -c 9000 right.checkpoint >cut.checkpoint
sed 's/"model":"linear"/"model":"\\u001b[2J<b>"/' right.jsonl >codes.jsonl
sed 's/"loss":[0-9.]*/"loss":1e400/' right.jsonl >infinite.jsonl
sed 's/"step":1,/"step":-9223372036854775808,/' right.jsonl >steps.jsonl
sed 's/"model":"linear"/"model":"<script>alert(1)<\/script>"/' right.jsonl >markup.jsonl
ls -A >"$scratch/before"

cases=0 failures=0
fail() {
    printf 'FAILED %s: %s\n    %s\n' "$name" "$1" "$command"
    failures=$((failures + 1))
}
# printable FILE : no bytes that a terminal obeys. Colours are for terminals alone, and none is here.
printable() { ! LC_ALL=C grep -qaP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xaa-\xae]' "$1"; }

while IFS='|' read -r name code text command; do
    name=${name%% *} code=${code// /} text=${text# } text=${text% } command=${command# }
    case $name in '' | '#'*)
        [ -z "$write" ] || printf '%s\n' "$name${code:+|$code|$text|$command}"
        continue
        ;;
    esac
    case $wanted in '  ' | *" $name "*) ;; *) continue ;; esac
    cases=$((cases + 1))
    (eval "timeout --kill-after=2 20 $command") </dev/null >"$scratch/out" 2>"$scratch/err"
    got=$?
    said=$(sed -n 's/^cleave: //p' "$scratch/err" | tail -n 1)
    if [ -n "$write" ]; then
        printf '%s | %d | %s | %s\n' "$name" $got "$(printf %.170s "${said//|/ }")" "$command"
    else
        [ $got = "$code" ] || fail "exit $got, not $code: $(head -c 300 "$scratch/err")"
        sentences=$(grep -c '^cleave: ' "$scratch/err")
        [ "$sentences" = 1 ] || [ "$code$sentences" = 00 ] || fail "$sentences sentences: $(head -c 300 "$scratch/err")"
        case $said in *"$text"*) ;; *) fail "says '$said', not '$text'" ;; esac
    fi
    [ "$(wc -c <"$scratch/err")" -lt 4000 ] || fail "$(wc -c <"$scratch/err") bytes on stderr"
    printable "$scratch/out" && printable "$scratch/err" || fail "prints what a terminal obeys: $(cat -v "$scratch/err" | head -c 300)"
    for made in $(ls -A | grep -vxFf "$scratch/before"); do
        case $made in out.*) ;; *) fail "made a file '$made'" ;; esac
        case $made in *.html) ! grep -qaiE '<script|<img|<x|<b>' "$made" || fail "the page holds markup of the file" ;; esac
        rm -rf "$made"
    done
done <"$folder/cases.txt"
[ -n "$write" ] || echo "$cases hostile cases, $failures failures"
[ $failures = 0 ] && [ $cases -gt 0 ]
