#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What is kept on disk between runs, ours and the driver's: used by several processes at once, damaged, foreign, linked, piped,
# shared, and without HOME. Each training must end well, with the bits of the one that kept nothing. By default a few processes
# and damages by twos; CLEAVE_TEST_LONG=1 (tests/caches.sh): 16 processes, each damage alone, on both kinds of driver.
. "$(dirname "$0")/common.sh"
long=${CLEAVE_TEST_LONG:-}
processes=${long:+16}
processes=${processes:-4}
"$helper" images 40 x.npy && "$helper" labels 40 y.npy || fail "no data"
me=$(id -u)
mkdir home tmp
unset XDG_CACHE_HOME POCL_CACHE_DIR CLEAVE_CACHE_DIR
export HOME="$scratch/home" TMPDIR="$scratch/tmp" RUSTICL_ENABLE=llvmpipe

train() {
    timeout 120 "$cleave" train --images "$scratch/x.npy" --labels "$scratch/y.npy" --model linear --steps 2 --json "$@"
}

# ends_well WHAT OPTIONS... : exit 0 and the bits of `expected`.
ends_well() {
    ends_what=$1
    shift
    rm -f w.safetensors
    train --save w.safetensors "$@" >out 2>err || fail "$ends_what: exit $?: $(cat err)"
    cmp -s w.safetensors "$expected" || fail "$ends_what: other bits"
}

# at_once OPTIONS... : many processes; each ends well.
at_once() {
    i=0
    pids=
    while [ $i -lt "$processes" ]; do
        train --save "w$i.safetensors" "$@" >"out$i" 2>"err$i" &
        pids="$pids $!"
        i=$((i + 1))
    done
    for pid in $pids; do wait "$pid" || fail "one of $processes at once: exit $?"; done
    i=0
    while [ $i -lt "$processes" ]; do
        cmp -s "w$i.safetensors" "$expected" || fail "process $i of $processes gave other bits: $(cat "err$i")"
        i=$((i + 1))
    done
}

# ---- where the driver keeps machine code itself (PoCL) ----------------------------------------------------------------

expected=$scratch/pocl.safetensors
if train --device pthread --save "$expected" >out 2>err; then
    rm -rf home/.cache
    at_once --device pthread
    [ -d home/.cache/pocl/kcache ] || fail "PoCL does not keep code below HOME: $(ls -A home)"

    # other_folder WHAT REASON VARIABLE=VALUE... : not where it usually is, in one sentence, and the same bits
    other_folder() {
        other_what=$1
        other_reason=$2
        shift 2
        env "$@" "$cleave" env --json >out 2>err || fail "$other_what: env: $(cat err)"
        other=$(at environment.POCL_CACHE_DIR 2>/dev/null)
        case $other in
        "$scratch/tmp/cleave-$me/pocl" | "~/.cache/cleave/pocl" | "$scratch/ours/pocl") ;;
        *) fail "$other_what: machine code is kept in '$other'" ;;
        esac
        same "$other_what: sentences" "$(grep -c 'PoCL would keep machine code' err)" 1
        grep -qF -- "$other_reason" err || fail "$other_what: not told why ('$other_reason'): $(cat err)"
    }
    other_folder "no HOME" "neither POCL_CACHE_DIR nor HOME names a folder" -u HOME
    [ "$(stat -c %a "tmp/cleave-$me/pocl")" = 700 ] || fail "the folder is open to others"
    (unset HOME && ends_well "no HOME" --device pthread && [ "$failures" = 0 ]) || failures=$((failures + 1))
    other_folder "no HOME, a cache of ours" "neither POCL_CACHE_DIR" -u HOME CLEAVE_CACHE_DIR="$scratch/ours"
    mkdir -m 777 open
    other_folder "a home that is open" "open: other users can write to it" HOME="$scratch/open"
    chmod 777 home/.cache/pocl/kcache
    other_folder "a shared folder" "kcache: other users can write to it"
    chmod 700 home/.cache/pocl/kcache
    mkfifo home/.cache/pocl/kcache/XX
    other_folder "a pipe in it" "'XX' in it is no file and no folder"
    rm home/.cache/pocl/kcache/XX
    ln -s / home/.cache/pocl/kcache/XX
    other_folder "a link in it" "'XX' in it is no file and no folder"
    rm home/.cache/pocl/kcache/XX
    other_folder "a pipe" "it is no folder" POCL_CACHE_DIR="$(mkfifo pipe && echo "$scratch/pipe")"
    if [ "$me" = 0 ]; then
        chown 65534 home/.cache/pocl/kcache
        other_folder "a foreign folder" "kcache: it belongs to another user"
        chown 0 home/.cache/pocl/kcache
        mkdir home/.cache/pocl/kcache/XX && chown 65534 home/.cache/pocl/kcache/XX
        other_folder "a foreign folder in it" "'XX' in it belongs to another user"
        rmdir home/.cache/pocl/kcache/XX
        ln -s "$scratch/home/.cache/pocl/kcache" link && chown -h 65534 link && chmod 1777 tmp && mv link tmp/link
        other_folder "a foreign link on the way" "tmp/link: it belongs to another user" XDG_CACHE_HOME="$scratch/tmp/link"
        rm tmp/link
        # somebody has the folder's name already: one for this process, and nothing is kept
        rm -rf "tmp/cleave-$me" && mkdir "tmp/cleave-$me" && chown 65534 "tmp/cleave-$me"
        env -u HOME "$cleave" env --json >out 2>err || fail "env: $(cat err)"
        case $(at environment.POCL_CACHE_DIR environment.POCL_KERNEL_CACHE | tr '\n' ' ') in
        "$scratch/tmp/cleave-$me/"*) fail "a foreign folder is used" ;;
        "$scratch/tmp/cleave-"*" 0 ") ;;
        *) fail "no folder: $(at environment.POCL_CACHE_DIR)" ;;
        esac
        at devices.0.quirks | grep -q 'keeps programs' && fail "a driver that keeps nothing is said to keep programs"
        rm -rf "tmp/cleave-$me"
    else
        in_part "folders of other users, which only root can make"
    fi
    # a home from which no code can be run: the driver would end the second process that uses its cache
    mkdir noexec
    if mount -t tmpfs -o noexec,mode=700 none noexec 2>/dev/null; then
        other_folder "a noexec home" "is on a file system that is mounted noexec" HOME="$scratch/noexec"
        for i in 1 2; do
            (export HOME="$scratch/noexec"; ends_well "noexec home, process $i" --device pthread && [ "$failures" = 0 ]) ||
                failures=$((failures + 1))
        done
        mkdir noexec/tmp
        env HOME="$scratch/noexec" TMPDIR="$scratch/noexec/tmp" "$cleave" env --json >out 2>err || fail "env: $(cat err)"
        case $(at environment.POCL_CACHE_DIR) in
        "/var/tmp/cleave-"*) ;;
        *) fail "a noexec temporary folder is used: $(at environment.POCL_CACHE_DIR)" ;;
        esac
        rm -rf "/var/tmp/cleave-$me"
        umount noexec
    else
        in_part "a noexec home, which only who may mount can make"
    fi
    works "$cleave" env --json
    same "no sentence when all is well" "$(grep -c 'PoCL would' err)" 0

    if [ -n "$long" ]; then # the driver's own files, damaged: not ours to read, but nothing may hang, and no bits may change
        for damage in empty half; do
            ends_well "PoCL, filled" --device pthread
            find home/.cache/pocl/kcache -name '*.bc' | while read -r file; do
                [ $damage = empty ] && : >"$file" || truncate -s $(($(stat -c %s "$file") / 2)) "$file"
            done
            train --device pthread --save w.safetensors >out 2>err
            echo "PoCL's .bc files $damage: exit $?"
            rm -rf home/.cache/pocl
        done
    fi
else
    in_part "PoCL's cache: $(cat err)"
    pocl=none
fi

# ---- where ours is used (rusticl) --------------------------------------------------------------------------------------

expected=$scratch/ours.safetensors
export CLEAVE_CACHE_DIR="$scratch/cache"
if ! train --device llvmpipe --no-cache --save "$expected" >out 2>err; then
    [ "${pocl:-}" != none ] || left_out "there is neither PoCL nor rusticl, whose caches these are: $(cat err)"
    in_part "our own cache, which rusticl needs: $(cat err)"
    finish
fi
at_once --device llvmpipe
valid() {
    "$cleave" cache list --json >out
    grep -c '"valid": true' out
}
entries=$(valid)
[ "$entries" -ge 1 ] || fail "nothing is kept"
same "half-written files" "$(find cache -name 'tmp-*' | wc -l)" 0
ends_well "from the cache" --device llvmpipe
same "hits" "$(at startup.cache_hits) $(at startup.cache_misses)" "$entries 0"

bytes() { stat -c %s "$1"; }
# poke FILE OFFSET BYTES : write bytes, as printf takes them, into a file
poke() { printf "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null; }
damage() {
    case $1 in
    empty) : >"$2" ;;
    short_header) truncate -s 20 "$2" ;;
    half) truncate -s $(($(bytes "$2") / 2)) "$2" ;;
    one_less) truncate -s $(($(bytes "$2") - 1)) "$2" ;;
    one_more) printf x >>"$2" ;;
    magic) poke "$2" 0 X ;;
    version) poke "$2" 8 '\377' ;;
    text_size) poke "$2" 12 '\377\377\377\377' ;;
    binary_size) poke "$2" 32 '\377\377\377\377\377\377\377\177' ;;
    key) poke "$2" 16 '\001\002\003\004' ;;
    hash) poke "$2" 40 '\001\002\003\004' ;;
    last_byte) poke "$2" $(($(bytes "$2") - 1)) '\125' ;;
    middle) poke "$2" $(($(bytes "$2") / 2)) '\125\252' ;;
    pipe) rm "$2" && mkfifo "$2" ;;
    link) mv "$2" "$2.moved" && ln -s "$2.moved" "$2" ;;
    endless_link) rm "$2" && ln -s /dev/zero "$2" ;;
    shared) chmod 666 "$2" ;;
    foreign) [ "$me" != 0 ] || chown 65534 "$2" ;;
    esac
}
damages="empty short_header half one_less one_more magic version text_size binary_size key hash last_byte middle pipe link \
endless_link shared foreign"
set -- $damages
while [ $# -gt 0 ]; do
    told=
    for file in cache/*.prog; do
        [ -z "$long" ] || [ -z "$told" ] || continue # one at a time
        [ $# -gt 0 ] || continue
        damage "$1" "$file"
        told="$told $1"
        shift
    done
    ends_well "$told" --device llvmpipe
    [ "$told" = " foreign" ] && [ "$me" != 0 ] || [ "$(at startup.cache_misses)" -gt 0 ] || fail "$told: not built again"
    rm -f cache/*.moved
    same "$told: entries" "$(valid)" "$entries"
done
ends_well "at the end" --device llvmpipe
same "hits at the end" "$(at startup.cache_hits) $(at startup.cache_misses)" "$entries 0"

# A folder in an entry's place cannot be replaced, and costs time alone.
file=$(ls cache/*.prog | head -n 1)
rm "$file" && mkdir "$file"
ends_well "a folder in its place" --device llvmpipe
rmdir "$file"

# The folder itself.
folder() {
    ends_well "$1" --device llvmpipe
    grep -qF -- "$2" err || fail "$1: not told why ('$2'): $(cat err)"
    same "$1: sentences" "$(grep -c 'the program cache' err)" 1
}
chmod 777 cache
folder "a shared folder" "other users can write to it"
chmod 700 cache
if [ "$me" = 0 ]; then
    chown 65534 cache
    folder "a foreign folder" "it belongs to another user"
    chown 0 cache
fi
mv cache kept
mkfifo cache
folder "a pipe" "Not a directory"
rm cache
ln -s "$scratch/kept" cache # whose link it is does not matter: the folder is this user's
ends_well "a linked folder" --device llvmpipe
ln -sfn "$scratch/nowhere" cache
ends_well "a link to nothing" --device llvmpipe
rm cache
unset CLEAVE_CACHE_DIR HOME
ends_well "neither a cache nor HOME" --device llvmpipe
export HOME="$scratch/home"
finish
