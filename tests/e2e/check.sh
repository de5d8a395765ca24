#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cleave check and cleave cache: JSON as it is promised, an unknown op, a cache that is damaged or cannot be used.
. "$(dirname "$0")/common.sh"

# all that are listed are run; of the cases a 16th, as ops_samples runs all of them on the same devices
works "$cleave" check --quick --device "$device" --list
[ "$(grep -c . out)" -gt 400 ] || fail "only $(grep -c . out) cases"
quick() {
    works "$cleave" check --quick --device "$device" --shard $((${CLEAVE_TURN:-0} % 16 + 1))/16 "$@"
}
quick --list
listed=$(grep -c . out)
quick --json
same "failed" "$(at failed)" 0
same "passed" "$(at passed)" "$(at cases)"
same "run" "$(at cases)" "$listed"
at skipped worst.0.op worst.0.variant worst.0.error worst.0.tolerance >/dev/null
works "$cleave" check --op relu --device "$device"
grep -q 'relu.*plan' out || fail "no table: $(cat out)"
expect 2 "no op 'sofmax'" "$cleave" check --op sofmax --device "$device"
at() { "$helper" json "$@" <out || fail "the JSON has no $*"; }

# which cases: by op and pattern, by name, without some, in shards; each is in one of them, and of no two the name is the same
check() { "$cleave" check --device "$device" "$@"; }
works check --list --op relu --op 'max_pool*' --op abs
cut -d/ -f1 out | sort -u | tr '\n' ' ' >ops
same "ops" "$(cat ops)" "abs max_pool1d max_pool2d max_pool2d_backward max_pool3d relu "
works check --list
sort out >all
# shellcheck disable=SC2046  # words on purpose
check --list $(sed 's,/.*,,' all | sort -u | sed 's/^/--op /') 2>err | sort | cmp -s - all || fail "not every op can be named at once: $(cat err)"
same "cases of the same name" "$(uniq -d all | wc -l)" 0
for i in 1 2 3; do check --list --shard $i/3; done | sort >shards
cmp -s all shards || fail "three shards are not all the cases, or hold one twice"
# an op's samples share kernels, so it goes whole to one shard; by itself it is dealt out, and shards are of like size
check --list --shard 1/4 | cut -d/ -f1 | sort -u >first
check --list --shard 2/4 | cut -d/ -f1 | sort -u >second
same "ops in two shards" "$(comm -12 first second | wc -l) $(grep -c . first | grep -c '^0$')" "0 0"
for i in 1 2 3 4; do check --list --shard $i/4 | wc -l; done | sort -n >sizes
[ "$(tail -n 1 sizes)" -lt $(($(head -n 1 sizes) * 2)) ] || fail "shards of $(tr '\n' ' ' <sizes)cases"
for i in 1 2; do check --list --op relu --shard $i/2 >"relu$i"; done
[ -s relu1 ] && [ -s relu2 ] || fail "the cases of one op are all in one of two shards"
expect 2 "there is no op 'ax*'" check --list --op 'relu' --op 'ax*'
expect 2 "has no case 'relu/plan/none'" check --case relu/plan/scalar --case relu/plan/none
for shard in 0/3 4/3 1 1/ /3 1/3x -1/3 1/0; do expect 2 "--shard wants I/N" check "--shard=$shard"; done
works check --case relu/plan/scalar --json
same "one case" "$(at cases passed results.0.name results.0.verdict failed not_run | tr '\n' ' ')" "1 1 relu/plan/scalar passed 0 0 "
at results.0.seconds results.0.ulp results.0.error results.0.tolerance results.0.sentence label driver version >/dev/null
works check --case 'relu/plan/scalar*' --exclude 'relu/plan/*, f16' --exclude 'relu/plan/*bf16' --json
[ "$(at excluded)" -ge 2 ] && same "those left" "$(at results | sed 's/array of //')" "$(at cases)"
"$helper" json results.0.name results.1.name <out | grep f16 && fail "excluded cases were run"

# the seed: other inputs, the same verdicts; the same seed, the same errors
errors() { sed -n 's/.*"error": //p' out; }
works check --case 'softmax/plan/rows of 10' --seed 1 --json
same "seed" "$(at seed failed | tr '\n' ' ')" "1 0 "
errors >one
works check --case 'softmax/plan/rows of 10' --seed 1 --json
errors >again
works check --case 'softmax/plan/rows of 10' --seed 2 --json
errors >two
cmp -s one again || fail "the same seed gives other errors"
[ "$device" = host ] || ! cmp -s one two || fail "another seed gives the same errors"

# as other programs read it
works check --case 'relu/*/scalar' --tap --junit check.xml
n=$(grep -c '^ok ' out)
[ "$(head -n 1 out)" = "TAP version 13" ] && [ "$(tail -n 1 out)" = "1..$n" ] && [ "$n" -ge 2 ] || fail "no TAP: $(cat out)"
same "tests of JUnit" "$(grep -c '<testcase classname="relu" name="[a-z]*/scalar" time="[0-9.]*">' check.xml)" "$n"
if command -v prove >/dev/null; then prove --exec cat out >proved 2>&1 || fail "prove: $(cat proved)"; fi
if command -v xmllint >/dev/null; then xmllint --noout check.xml || fail "JUnit's XML is not well formed"; fi
works check --case 'max_pool2d/differences/*' --dtype f32 --tap
grep -q '^ok [0-9]* - max_pool2d/differences/.* # SKIP gradient not compared with finite differences' out || fail "no skip in TAP: $(cat out)"

# interrupted: what was found until then is counted
mkfifo cases
"$cleave" check --device "$device" --tap --no-record >cases 2>err &
process=$!
{ sed -n 40q; kill -INT $process; cat >/dev/null; } <cases
wait $process
same "the exit code of an interrupted check" $? 130
grep -q '^cleave: check stopped after [0-9]* of [0-9]* cases: [1-9][0-9]* passed, 0 failed$' err || fail "an interrupted check does not count: $(cat err)"

# what stands in the way: exit 3 where nothing could be found out, 2 for words that make no sense
expect 2 "--tap and --json are both for stdout" check --tap --json
expect 2 "--list runs nothing" check --list --tap
expect 2 "--reproduce takes one case" check --reproduce relu/plan/scalar --list
expect 3 "cannot write 'nowhere/x.xml'" check --junit nowhere/x.xml
expect 3 "'missing' cannot be read" check --known-failures missing
expect 3 "'missing' cannot be read" check --baseline missing
echo '{"device":"x"}' >other.json
expect 3 "'other.json' is no result of \`cleave check --json\`" check --baseline other.json
if [ -w /dev/full ]; then
    "$cleave" check --device "$device" --case relu/plan/scalar >/dev/full 2>err
    same "exit code with a full stdout" $? 3
fi

# skips by reason, the most frequent first; colours on a terminal only, and not with NO_COLOR
works "$cleave" check --device host --op max_pool2d --op relu --dtype f32
grep -q '^1 case was skipped, because$' out && grep -q '^ *[0-9]*  gradient not compared with finite differences: .*: max_pool2d' out ||
    fail "no skips by reason: $(cat out)"
grep -q "$(printf '\033')" out && fail "colours in a file"
if command -v script >/dev/null; then
    TERM=xterm script -qec "'$cleave' check --device $device --case relu/plan/scalar --quiet" /dev/null >out </dev/null
    grep -q "$(printf '\033\\[32m')1 passed" out || fail "no colours on a terminal: $(cat -v out)"
    NO_COLOR=1 TERM=xterm script -qec "'$cleave' check --device $device --case relu/plan/scalar --quiet" /dev/null >out </dev/null
    grep -q "$(printf '\033')" out && fail "colours in spite of NO_COLOR"
fi

# drivers beside ops, of several runs; names from a file are text
works check --case relu/plan/scalar --case exp/plan/scalar --json
cp out a.json
sed 's/"label": "[^"]*"/"label": "<b>other"/; s/"verdict": "passed"/"verdict": "failed"/' a.json >b.json
works "$cleave" report -o matrix.html --results a.json --results b.json --json
n=$("$helper" json results <a.json | sed 's/array of //')
same "the page" "$(at file drivers ops | tr '\n' ' ')" "matrix.html 2 2 "
grep -q '&lt;b&gt;other' matrix.html && ! grep -q '<b>other' matrix.html || fail "a driver's name is markup"
for tag in table tr td div ul h2; do
    same "$tag" "$(grep -oE "<$tag[ >]" matrix.html | wc -l)" "$(grep -o "</$tag>" matrix.html | wc -l)"
done
same "failed cases" "$(at failed)" "$n" # what the file says of itself is 0
grep -qF "'b.json' says that $("$helper" json passed <b.json) cases passed and 0 failed; of its cases 0 passed and $n failed, and these count" err ||
    fail "not told of sums that are wrong: $(cat err)"
grep -c "'a.json' says" err | grep -qx 0 || fail "sums that are right are doubted"
grep -q "data-head=\"failed\">$n</td>" matrix.html || fail "the page has the file's own sum"
grep -q '>relu</td><td class="n good" data-head="[^"]*"><span>\([0-9]*\)/\1.*<td class="n bad" data-head="[^"]*"><span>0/' matrix.html || fail "no row of relu: $(grep relu matrix.html)"
expect 1 "'other.json' is no result of" "$cleave" report -o matrix.html --results other.json
expect 2 "--results makes a page of what was run before" "$cleave" report -o matrix.html --results a.json --device "$device"

# a cache of our own: listed, damaged files are built again, cleared
export CLEAVE_CACHE_DIR="$scratch/cache"
works "$cleave" cache list --json
same "folder" "$(at folder)" "$scratch/cache"
same "programs" "$(at programs)" "array of 0"
works "$cleave" check --op relu --device "$device"
works "$cleave" cache list --json
for file in cache/*; do [ -f "$file" ] && echo damaged >"$file"; done
works "$cleave" check --op relu --device "$device" # built again
works "$cleave" cache clear --json
at removed folder >/dev/null
works "$cleave" cache list --json
same "programs after clear" "$(at programs)" "array of 0"

# folders that cannot be used cost time, nothing else
for folder in /dev/null/cache /proc/cache; do
    works env CLEAVE_CACHE_DIR=$folder "$cleave" check --op relu --device "$device" --quick
done
works "$cleave" check --op relu --device "$device" --no-cache --quick
finish
