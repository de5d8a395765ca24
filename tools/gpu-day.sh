#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What there is to know of a card that is at hand for a day, into one folder with a summary: what the machine and its drivers are,
# whether every op is right on the device, how fast products, convolutions, ops and models are, whether a training takes the course
# it takes on the references, what a whole training reaches, and PyTorch beside it where that is installed. Needs no network.
#
#     tools/gpu-day.sh [OPTIONS] [FOLDER]     results into FOLDER; default: gpu-day
#     tools/gpu-day.sh --pack FOLDER          a folder to carry to another machine: the command, its libraries, images and this script.
#                                             There: FOLDER/gpu-day.sh; it needs no compiler and no packages
#
#     --device SPEC    as for cleave; default: gpu, or the best there is where there is none
#     --small          small sizes, in a minute or two: is everything in its place?
#     --parts LIST     only these: machine,kernels,check,gemm,units,conv,ops,models,profile,curve,train,pytorch,report (kernels is of a packed folder)
#     --minutes N      each part at most so long; default 20; 0: as long as it takes
#     --jobs N         processes that check, each a part of the cases, as most of that time is the compiler's; default: one a core
#     --cleave FILE    the command line; default: the one beside this script, of build/release, build/dev, or on PATH
#     --data DIR       folder of Fashion-MNIST's files, as for cleave
#     --python FILE    a Python with torch and numpy; default: python3
#
# FOLDER/summary.md has a row for each part, FOLDER/PART.txt what it printed, *.json the figures. A part that fails does not stop the others.
# Drivers that no .icd file names (a GPU's library that came without one) are found by their libraries' names. Exit 0: every part that
# could run passed; 1: one failed; 2: wrong usage; 3: no device to look at.
set -u
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
device= small= only= minutes=20 jobs= cleave= data= python=python3 pack= out=

fail() {
    echo "gpu-day: $1" >&2
    exit "${2:-2}"
}
while [ $# -gt 0 ]; do
    case $1 in
    --small) small=1 ;;
    --help | -h)
        sed -n '3,/^set/{/^#/s/^# \{0,1\}//p}' "$0"
        exit 0
        ;;
    --device | --parts | --minutes | --jobs | --cleave | --data | --python | --pack)
        [ $# -gt 1 ] || fail "$1 wants a value (try --help)"
        case $1 in
        --device) device=$2 ;;
        --parts) only=,$2, ;;
        --minutes) minutes=$2 ;;
        --jobs) jobs=$2 ;;
        --cleave) cleave=$2 ;;
        --data) data=$2 ;;
        --python) python=$2 ;;
        --pack) pack=$2 ;;
        esac
        shift
        ;;
    -*) fail "unknown option '$1' (try --help)" ;;
    *)
        [ -z "$out" ] || fail "two folders: '$out' and '$1' (try --help)"
        out=$1
        ;;
    esac
    shift
done
all_parts=machine,kernels,check,gemm,units,conv,ops,models,profile,curve,train,pytorch,report
set -f # a part is a word, not names of files
for part in $(echo "$only" | tr ',' ' '); do
    case ",$all_parts," in *",$part,"*) ;; *) fail "--parts: there is no part '$part', but $all_parts" ;; esac
done
set +f
case $only in *[!,]* | '') ;; *) fail "--parts wants some of $all_parts" ;; esac
case $minutes in '' | *[!0-9]*) fail "--minutes wants a whole number, not '$minutes'" ;; esac
jobs=${jobs:-$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)}
case $jobs in '' | *[!0-9]* | 0*) fail "--jobs wants a whole number above 0, not '$jobs'" ;; esac

if [ -z "$cleave" ]; then
    for cleave in "$here/bin/cleave" "$here/../build/release/cleave" "$here/../build/dev/cleave" "$(command -v cleave)"; do
        [ -x "$cleave" ] && break
    done
fi
[ -x "$cleave" ] || fail "there is no command 'cleave': build it (tools/build.sh release), or name it with --cleave" 3
cleave=$(cd "$(dirname "$cleave")" && pwd)/${cleave##*/}

# ---- a folder to carry -----------------------------------------------------------------------------------------------

# What is of the system itself stays there. C++'s library is taken along and used only where there is none: a driver may want a newer one.
pack() {
    [ ! -e "$pack" ] || [ -z "$(ls -A "$pack")" ] || fail "'$pack' is there and not empty"
    mkdir -p "$pack/bin" "$pack/lib" "$pack/lib-if-missing" "$pack/tools" || fail "cannot write to '$pack'" 1
    cp "$cleave" "$pack/bin/cleave" && cp "$0" "$pack/gpu-day.sh" || fail "cannot copy into '$pack'" 1
    [ ! -e "$here/bench-pytorch.py" ] || cp "$here/bench-pytorch.py" "$pack/tools/"
    ldd "$cleave" | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | while read -r library; do
        case ${library##*/} in
        libc.so* | libm.so* | libdl.so* | libpthread.so* | librt.so*) ;;
        libstdc++* | libgcc_s*) cp -L "$library" "$pack/lib-if-missing/" ;;
        *) cp -L "$library" "$pack/lib/" ;;
        esac || exit 1
    done || fail "cannot copy the libraries into '$pack'" 1
    images=${data:-${CLEAVE_DATA_DIR:-/usr/share/datasets/fashion-mnist}}
    if [ -d "$images" ]; then
        mkdir "$pack/data" && cp "$images"/*ubyte* "$pack/data/" || fail "cannot copy the images of '$images' into '$pack'" 1
    else
        echo "gpu-day: there is no folder '$images': packed without images, so without trainings" >&2
    fi
    if [ -x "${cleave%/*}/tests/drivers/meter_launches" ] && [ -x "$here/../tests/drivers/ptx/pack.sh" ]; then
        "$here/../tests/drivers/ptx/pack.sh" "${cleave%/*}/tests/drivers/meter_launches" "$pack/ptx" || [ $? = 77 ] ||
            fail "cannot make the programs of '$pack/ptx'" 1
    fi
    echo "Packed $(du -sh "$pack" | cut -f 1) into $pack: on the other machine run gpu-day.sh in it." >&2
}
if [ -n "$pack" ]; then
    pack
    exit 0
fi

# ---- where to, with what ---------------------------------------------------------------------------------------------

out=${out:-gpu-day}
mkdir -p "$out" && [ -w "$out" ] || fail "cannot write to '$out'" 1
out=$(cd "$out" && pwd)
rm -f "$out/rows" "$out/summary.md"
if [ -d "$here/lib" ]; then # packed
    LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    "$cleave" --version >/dev/null 2>&1 || LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$here/lib-if-missing
    export LD_LIBRARY_PATH
    data=${data:-$here/data}
fi
"$cleave" --version >"$out/version.txt" 2>&1 || fail "'$cleave' does not start: $(tail -n 1 "$out/version.txt")" 3
export CLEAVE_CACHE_DIR="${CLEAVE_CACHE_DIR:-$out/cache}"

# A driver's library without an .icd file: name it in a folder of our own, beside those that the system names.
find_drivers() {
    mkdir -p "$out/vendors"
    for folder in ${OCL_ICD_VENDORS:-/etc/OpenCL/vendors}; do
        [ ! -d "$folder" ] || cp "$folder"/*.icd "$out/vendors/" 2>/dev/null
    done
    for name in libnvidia-opencl.so.1 libamdocl64.so libigdrcl.so libmali.so.1 libPVROCL.so libOpenCL_adreno.so; do
        ! grep -qs "${name%.so*}" "$out"/vendors/*.icd || continue
        library=$( (ldconfig -p 2>/dev/null || /sbin/ldconfig -p 2>/dev/null) | awk -v n="$name" '$1 == n {print $NF; exit}')
        [ -n "$library" ] || library=$(find /usr/lib /usr/lib64 /usr/local /opt /vendor/lib64 -name "$name*" 2>/dev/null | head -n 1)
        [ -n "$library" ] || continue
        echo "$library" >"$out/vendors/gpu-day-${name%%.*}.icd"
        echo "${library%/*}" >>"$out/vendors/folders" # of the libraries that it loads itself
        echo "found $library, which no .icd file names"
    done
    [ -z "$(ls "$out/vendors")" ] || export OCL_ICD_VENDORS="$out/vendors"
}
[ -f "${OCL_ICD_VENDORS:-}" ] || find_drivers >"$out/drivers.txt"
if [ -s "$out/vendors/folders" ]; then
    LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$(paste -s -d : "$out/vendors/folders")
    export LD_LIBRARY_PATH
    rm "$out/vendors/folders"
fi

if [ -z "$device" ]; then
    device=gpu
    "$cleave" bench --list --device gpu >/dev/null 2>&1 && "$cleave" plan linear --device gpu >/dev/null 2>&1 || device=
    [ -n "$device" ] || device=$("$cleave" devices --json 2>/dev/null | sed -n 's/^ *"name": "\(.*\)",/\1/p' | head -n 1)
fi
[ -n "$device" ] || fail "there is no device; '$cleave devices' says why" 3
"$cleave" check --list --op relu --device "$device" >/dev/null 2>"$out/error.txt" || fail "$(tail -n 1 "$out/error.txt")" 3
rm -f "$out/error.txt"

# ---- the parts -------------------------------------------------------------------------------------------------------

failed=0
# part NAME FUNCTION : run it within its time, unless it was not asked for; a row for the summary. A part's last words go to $out/NAME.said.
part() {
    name=$1
    case ${only:-,$name,} in *",$name,"*) ;; *) return 0 ;; esac
    printf 'gpu-day: %s\n' "$name" >&2
    rm -f "$out/$name.said"
    start=$(date +%s)
    "$2" >"$out/$name.txt" 2>&1
    code=$?
    case $code in
    0) word=passed ;;
    77) word='left out' ;;
    124 | 137) word="FAILED (more than $minutes minutes)" failed=$((failed + 1)) ;;
    *) word="FAILED ($code)" failed=$((failed + 1)) ;;
    esac
    [ -s "$out/$name.said" ] || tail -n 1 "$out/$name.txt" >"$out/$name.said"
    printf '| %s | %s | %d s | %s |\n' "$name" "$word" $(($(date +%s) - start)) "$(tr '|\n' '/ ' <"$out/$name.said")" >>"$out/rows"
    rm -f "$out/$name.said"
}
say() { printf '%s\n' "$*" >"$out/$name.said"; }
# What runs is in the background, where a signal finds it: timeout has a group of processes of its own.
running=
start_limited() {
    timeout --kill-after=20 $((minutes * 60)) "$@" &
    running="$running $!"
}
limited() {
    running=
    start_limited "$@"
    wait "${running# }"
    set -- $?
    running=
    return "$1"
}
stop() {
    trap '' INT TERM
    # shellcheck disable=SC2086  # numbers, split on purpose
    kill $running 2>/dev/null
    exit "$1"
}
trap 'stop 130' INT
trap 'stop 143' TERM

machine() {
    uname -a
    cat /etc/os-release /proc/driver/nvidia/version 2>/dev/null
    cat "$out/drivers.txt" 2>/dev/null
    for tool in lscpu nvidia-smi 'rocm-smi -a' clinfo; do
        command -v "${tool%% *}" >/dev/null || continue
        echo "== $tool"
        timeout 60 $tool 2>&1
    done
    echo "== cleave env"
    "$cleave" env --json >"$out/env.json" && "$cleave" devices --json >"$out/devices.json" && "$cleave" devices && "$cleave" env || return
    say "device '$device': $(limited "$cleave" bench gemm --size 256x256x256 --device "$device" --runs 1 --seconds 0.1 2>/dev/null | head -n 1)"
}
# A card with its vendor's compute driver, whether or not it has one for OpenCL: kernels through that driver.
kernels() {
    [ -x "$here/ptx/ptx" ] || { say "no programs here; --pack takes them along from a build with its tests"; return 77; }
    limited "$here/ptx/ptx" "$here/ptx"
}
sample=${small:+--quick --dtype f32 --op matmul --op softmax}
check() {
    rm -f "$out"/check-*
    shard=1 status=0 running=
    while [ $shard -le "$jobs" ]; do
        # shellcheck disable=SC2086  # options, split on purpose
        start_limited "$cleave" check --device "$device" $sample --shard "$shard/$jobs" --tap --junit "$out/check-$shard.xml" \
            >"$out/check-$shard.tap" 2>&1
        shard=$((shard + 1))
    done
    for process in $running; do
        wait "$process" || status=$?
    done
    running=
    grep -h -A 12 '^not ok' "$out"/check-*.tap
    grep -h -v -e '^ok' -e '^ ' -e '^#' -e '^TAP' -e '^1\.\.' "$out"/check-*.tap | sort | uniq -c | head -n 200
    say "$(cat "$out"/check-*.tap | awk '/^ok .*# SKIP/ {skipped++; next} /^ok / {passed++} /^not ok / {failed++}
        END {printf "%d passed, %d failed, %d skipped", passed, failed, skipped}')"
    return $status
}
# The table, and the slowest beside the device's measured peak.
bench() {
    suite=$1
    shift
    limited "$cleave" bench "$suite" --device "$device" --json "$@" >"$out/$suite.json" || {
        code=$?
        cat "$out/$suite.json"
        return $code
    }
    tr -d '\n' <"$out/$suite.json" | sed 's/{ *"suite"/\n&/g' | awk '
        function of(key) { return match($0, "\"" key "\": [^,}]*") ? substr($0, RSTART + length(key) + 4, RLENGTH - length(key) - 4) : "" }
        function text(key,   t) { t = of(key); gsub(/"/, "", t); return t }
        /^{ *"suite"/ { printf "%-34s %-16s %12.4f ms %9.1f GFLOP/s %8.2f GB/s %5.1f %%\n", text("case"), text("mode"), of("median_ms"),
                            of("gflops"), of("gbps"), 100 * of("peak_fraction")
                        n++; sum += log(of("peak_fraction") + 1e-9)
                        if (n == 1 || of("peak_fraction") < least) { least = of("peak_fraction"); which = text("case") " " text("mode") } }
        END { if (n) printf "%d cases: %.1f %% of the measured peak (geometric mean); least %.1f %%: %s\n", n, 100 * exp(sum / n), 100 * least, which
              exit n == 0 }'
}
short() { if [ -n "$small" ]; then echo --runs 1 --seconds 0.05; else echo --runs 5 --seconds 0.5; fi; }
# shellcheck disable=SC2046  # options, split on purpose
gemm() { bench gemm $(short) ${small:+--case 256x256x256}; }
# shellcheck disable=SC2046
conv() { bench conv $(short) ${small:+--case 'n64 c1 28x28 o32 k3 s1 p0 g1'}; }
# shellcheck disable=SC2046
ops() { bench ops $(short) ${small:+--case 'softmax 4096x1024'}; }
# shellcheck disable=SC2046
models() { bench models $(short) ${small:+--model mlp}; }

# One large product by each variant of matrix units, and by the tiles without; in mixed precision with operands in halves.
units() {
    product=4096x4096x4096 ran=0
    [ -z "$small" ] || product=128x128x128
    for variant in gemm:128x128 tf32 tf32:wide tf32:64x64 bf16x2 bf16x3 bf16x3:64x64 bf16 \
        mixed=f16 mixed=f16:wide mixed=f16:64x64 mixed-bf16=bf16 mixed-bf16=bf16:wide; do
        precision=f32
        [ "$variant" = "${variant#*=}" ] || precision=${variant%%=*}
        # shellcheck disable=SC2046  # options, split on purpose
        limited "$cleave" bench gemm --size $product --device "$device" --precision $precision --variants "matmul=${variant#*=}" $(short) \
            --quiet >"$out/unit.txt" 2>&1 && ran=$((ran + 1))
        printf '%-21s %s\n' "$variant" "$(tail -n 1 "$out/unit.txt")"
    done
    rm -f "$out/unit.txt"
    say "$ran variants ran"
    [ $ran != 0 ] || return 77
}
# Where a training step's time goes, layer by layer, of images that are noise: products as they are, in tf32, in halves.
profile() {
    for way in 'f32 --float32-products highest' 'high --float32-products high' 'mixed --precision mixed'; do
        # shellcheck disable=SC2086  # words, split on purpose
        profile_in $way || return
    done
}
profile_in() { # NAME OPTION...
    way=$1 options="$2 $3"
    set -- resnet18 resnet50 mobilenet_v2 vgg16 alexnet
    size=224 images=32 steps=12
    [ -z "$small" ] || { set -- mlp; size=28 images=8 steps=3; }
    status=0
    for model in "$@"; do
        channels=3
        [ "$model" != mlp ] || channels=1
        npy "$out/images.npy" "($images, $channels, $size, $size)" '|u1' $((images * channels * size * size)) /dev/urandom
        npy "$out/labels.npy" "($images,)" '|u1' "$images" /dev/zero
        # shellcheck disable=SC2086  # two words, split on purpose
        limited "$cleave" train $options --images "$out/images.npy" --labels "$out/labels.npy" --model "$model" --batch "$images" --epochs $steps \
            --device "$device" --optimizer momentum --lr 0.001 --profile --json --quiet >"$out/profile-$model-$way.json" || status=$?
        sed -n "s/^ *\"step_ms\": *\([0-9.]*\).*/$model, $way: \1 ms a step of $images images/p" "$out/profile-$model-$way.json" | head -n 1
    done
    rm -f "$out/images.npy" "$out/labels.npy"
    return $status
}
# npy FILE SHAPE DTYPE BYTES FROM : an array of what is read FROM.
npy() {
    header="{'descr': '$3', 'fortran_order': False, 'shape': $2, }"
    { printf '\223NUMPY\001\000\166\000%-117s\n' "$header" && head -c "$4" "$5"; } >"$1"
}
# losses NAME DEVICE : of 20 steps, one a line. The references of the CNN take a minute: not where sizes are small.
curve_model=${small:+mlp} curve_model=${curve_model:-cnn}
losses() {
    rm -f "$out/curve-$1.jsonl"
    limited "$cleave" train fashion-mnist --model "$curve_model" --device "$2" --batch 12 --limit 240 --epochs 1 --seed 1 --log "$out/curve-$1.jsonl" \
        --json ${data:+--data "$data"} >"$out/curve-$1.json" || return
    sed -n 's/.*"loss": *\([^,} ]*\).*/\1/p' "$out/curve-$1.jsonl" | head -n 20 >"$out/curve-$1.txt"
}
curve() {
    images || return
    losses host host && losses device "$device" || return
    paste "$out/curve-host.txt" "$out/curve-device.txt" | awk '
        { d = $1 - $2; if (d < 0) d = -d; r = d / ($1 < 0 ? -$1 : $1); if (r > worst) worst = r; if (NF < 2 || $2 != $2 + 0) bad = 1 }
        END { printf "losses of %d steps within %.1e of the references (1e-3 is asked for)\n", NR, worst
              exit !(NR == 20 && worst <= 1e-3 && !bad) }'
}
images() {
    [ -d "${data:-${CLEAVE_DATA_DIR:-/usr/share/datasets/fashion-mnist}}" ] && return
    say "no images of Fashion-MNIST here (--data DIR)"
    return 77
}
# A training as a person does it: the demo's CNN, and resnet18's steps in f32 and in mixed precision.
train() {
    images || return
    limited "$cleave" train fashion-mnist --model cnn --device "$device" --seed 1 ${small:+--limit 1280} ${small:+--epochs 1} \
        --log "$out/train.jsonl" --json ${data:+--data "$data"} >"$out/train.json" || return
    cat "$out/train.json"
    say "CNN: $(sed -n 's/^  "\(test_accuracy\|images_per_second\|seconds\)": \([^,]*\),*/\1 \2/p' "$out/train.json" | tr '\n' ' ')"
}
# Where Python's torch sees a card: each suite in turn with it.
pytorch() {
    script=$here/bench-pytorch.py
    [ -e "$script" ] || script=$here/tools/bench-pytorch.py
    torch=$("$python" -c 'import numpy, torch; print("cuda" if torch.cuda.is_available() else "cpu")' 2>/dev/null)
    if [ -z "$torch" ] || [ ! -e "$script" ]; then
        say "no Python with torch and numpy here (--python FILE)"
        return 77
    fi
    [ "$torch" = cuda ] || [ -z "$small" ] || { say "torch sees no card"; return 77; }
    status=0
    for suite in gemm conv models; do
        [ -z "$small" ] || [ $suite = gemm ] || continue
        echo "== $suite"
        limited "$python" "$script" "$cleave" $suite --device "$device" --torch-device "$torch" --rounds 3 --runs 3 --seconds 0.3 || status=$?
    done
    return $status
}
report() {
    [ -z "$small" ] || { say "not with --small: it checks and measures once more"; return 77; }
    logs=
    [ ! -s "$out/train.jsonl" ] || logs='--log train.jsonl'
    # shellcheck disable=SC2086  # two words, split on purpose
    (cd "$out" && limited "$cleave" report --device "$device" --check --bench --output report.html $logs) || return
    say "report.html"
}

part machine machine
part kernels kernels
part check check
part gemm gemm
part units units
part conv conv
part ops ops
part models models
part profile profile
part curve curve
part train train
part pytorch pytorch
part report report

{
    echo "# $(cat "$out/version.txt") on '$device', $(date -u +%Y-%m-%d)"
    echo
    [ ! -s "$out/drivers.txt" ] || { cat "$out/drivers.txt" && echo; }
    [ -z "$small" ] || { echo 'Small sizes: these figures say that everything is in its place, and nothing of speed.' && echo; }
    echo '| part | outcome | took | what it says |'
    echo '|---|---|---|---|'
    cat "$out/rows"
} >"$out/summary.md"
rm -f "$out/rows"
cat "$out/summary.md"
[ $failed = 0 ]
