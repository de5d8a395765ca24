#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cleave bench: JSON as it is promised, what does not go together, tools/bench-compare. No time is judged: a test machine is busy.
. "$(dirname "$0")/common.sh"
export CLEAVE_CACHE_DIR="$scratch/cache"
short="--runs 3 --seconds 0.01 --device $device"

positive() { # positive WHAT VALUE
    awk -v v="$2" 'BEGIN { exit !(v + 0 > 0) }' || fail "$1 is '$2'"
}

works "$cleave" bench --list --json
same "a case's suite" "$(at cases.0.suite)" gemm
at device cases.0.case cases.0.mode >/dev/null
works "$cleave" bench conv --mode backward_data --list
grep -q 'backward_weight\|gemm' out && fail "--list does not keep to suite and mode: $(cat out)"

# shellcheck disable=SC2086
works "$cleave" bench --size 5x7x3 $short --json
same "results" "$(at results)" "array of 1"
same "suite case mode runs" "$(at results.0.suite results.0.case results.0.mode results.0.runs | tr '\n' ' ')" "gemm 5x7x3 forward 3 "
same "device" "$(at results.0.device)" "$(at device)"
same "failures" "$(at failures)" "array of 0"
for field in median_ms min_ms max_ms gflops gbps; do positive "$field" "$(at results.0.$field)"; done
awk -v a="$(at results.0.min_ms)" -v b="$(at results.0.median_ms)" -v c="$(at results.0.max_ms)" \
    'BEGIN { exit !(a <= b && b <= c) }' || fail "median outside of min and max"
if [ "$device" = host ]; then # runs no kernels: no peak
    same "peak" "$(at device_peak results.0.peak_fraction | tr '\n' ' ')" "null null "
else
    for field in device_peak.gflops device_peak.gbps results.0.peak_fraction; do positive "$field" "$(at $field)"; done
    # the peak is measured once and kept
    first=$(at device_peak.gflops)
    # shellcheck disable=SC2086
    works "$cleave" bench --size 5x7x3 $short --json
    same "the kept peak" "$(at device_peak.gflops)" "$first"
    for file in cache/*; do echo damaged >"$file"; done
    # shellcheck disable=SC2086
    works "$cleave" bench --size 5x7x3 $short --json
    positive "the peak after damage" "$(at device_peak.gflops)"
    [ "$(at device_peak.gflops)" != "$first" ] || fail "a damaged file was believed"
fi

for mode in train infer; do
    # shellcheck disable=SC2086
    works "$cleave" bench --model mlp --batch 3 --mode $mode $short --json
    same "a model" "$(at results results.0.suite results.0.case results.0.mode | tr '\n' ' ')" "array of 1 models mlp b3 $mode "
    positive "its gflops" "$(at results.0.gflops)"
done
# in halves: a product moves half the bytes
for precision in mixed mixed-bf16; do
    # shellcheck disable=SC2086
    works "$cleave" bench --size 5x7x3 $short --precision $precision --json
    same "precision" "$(at precision results)" "$(printf '%s\narray of 1' $precision)"
    awk -v ms="$(at results.0.median_ms)" -v gbps="$(at results.0.gbps)" -v bytes=$((2 * (5 * 3 + 3 * 7 + 5 * 7))) \
        'BEGIN { got = ms * gbps * 1e6; exit !(got > bytes * 0.99 && got < bytes * 1.01) }' || fail "not the bytes of halves: $(at results.0.gbps)"
    # shellcheck disable=SC2086
    works "$cleave" bench ops --case 'avg_pool2d 8x64x56x56' $short --precision $precision --json
    same "failures" "$(at failures)" "array of 0"
done
for mode in forward backward_data backward_weight; do
    # shellcheck disable=SC2086
    [ "$device" = host ] || works "$cleave" bench conv --case 'n8 c512 7x7 o512 k3 s1 p1 g1' --mode $mode $short --json
    [ "$device" = host ] || same "$mode" "$(at results results.0.mode | tr '\n' ' ')" "array of 1 $mode "
done
# shellcheck disable=SC2086
works "$cleave" bench --size 5x7x3 $short
grep -q '5x7x3 .*forward' out || fail "no table: $(cat out)"

# what the device cannot hold is a failed case, and the others' results stay
# shellcheck disable=SC2086
"$cleave" bench models --mode infer --case 'cnn b64' $short --budget "$device=100KiB" --json --no-cache >out 2>err
[ $? = 1 ] || fail "a case that does not fit is no failure"
same "what does not fit" "$(at failures failures.0.case results | tr '\n' ' ')" "array of 1 cnn b64 array of 0 "
same "a peak without room" "$(at device_peak)" null

# two files of results: slower beyond the spread, within it, gone, and no results at all
if command -v python3 >/dev/null; then
    compare=$(dirname "$0")/../../tools/bench-compare
    result() { # result MIN MEDIAN MAX [NAME]
        printf '{"results": [{"suite": "gemm", "case": "%s", "device": "cpu:0", "mode": "forward", "min_ms": %s, ' "${4:-1x1x1}" "$1"
        printf '"median_ms": %s, "max_ms": %s}]}' "$2" "$3"
    }
    result 1.0 1.1 1.3 >before
    result 1.2 1.4 1.5 >overlaps
    result 1.4 1.5 1.6 >slower
    result 1.0 1.1 1.3 other >other
    result 3 2 1 >mixed
    works python3 "$compare" before overlaps
    python3 "$compare" before slower >out 2>err
    [ $? = 1 ] && grep -q '1x1x1 .*SLOWER' out || fail "a lost regression is not told: $(cat out err)"
    works python3 "$compare" before slower --tolerance 0.5
    works python3 "$compare" slower before --all
    grep -q 'faster' out || fail "--all does not tell what is faster"
    python3 "$compare" before other >out 2>err
    [ $? = 1 ] && grep -q 'gone' out || fail "a case that is gone is not told"
    printf '{"results": [], "failures": [{"suite": "gemm", "case": "1x1x1", "device": "cpu:0", "mode": "forward", ' >failed
    printf '"sentence": "it does not fit"}]}' >>failed
    python3 "$compare" before failed >out 2>err
    [ $? = 1 ] && grep -q '1x1x1 .*FAILED: it does not fit' out || fail "a case that failed is not told: $(cat out err)"
    for bad in mixed nothing err "$0"; do
        python3 "$compare" before "$bad" >out 2>err
        [ $? = 2 ] && grep -q '^bench-compare: ' err || fail "'$bad' is taken for results"
    done
fi

expect 2 "no suite 'gem'; there are gemm, conv, ops, models" "$cleave" bench gem --device host
expect 2 "no case '3x3x3'" "$cleave" bench gemm --case 3x3x3 --device host
expect 2 "unknown model 'nothing'" "$cleave" bench --model nothing --device host
for size in 3 3x3 3x3x 3x3x0 -3x3x3 3x3x3x3 ' 3x3x3' 3x3x99999999999999999999; do
    expect 2 "--size wants MxNxK" "$cleave" bench "--size=$size"
done
expect 2 "--size is for the suite gemm, and this is conv" "$cleave" bench conv --size 3x3x3
expect 2 "--model is for the suite models, and this is ops" "$cleave" bench ops --model mlp
expect 2 "--size is for the suite gemm, and --batch for models" "$cleave" bench --size 3x3x3 --batch 2
expect 2 "--mode wants one of" "$cleave" bench --mode back
expect 2 "--runs wants" "$cleave" bench --runs 0
expect 2 "--seconds wants" "$cleave" bench --seconds 0
finish
