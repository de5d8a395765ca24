#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The page of cleave report: whole and well formed, nothing loaded from elsewhere, everything escaped, and the file that was there is
# replaced by a whole one or stays.
. "$(dirname "$0")/common.sh"
"$helper" images 32 x.npy && "$helper" labels 32 y.npy || fail "no data"
train() { "$cleave" train --images x.npy --labels y.npy --model linear --device "$device" --batch 16 --quiet "$@"; }
works train --epochs 3 --log a.jsonl
mkdir data && "$helper" idx data 32 0=1 || fail "no dataset"
works "$cleave" train fashion-mnist --data data --model linear --device "$device" --batch 16 --epochs 2 --quiet --log tested.jsonl
works train --epochs 3 --lr 0.01 --log 'b<script>"&.jsonl'
# The table of options says what the log and the summary tell of a setting.
works "$cleave" train --images x.npy --labels y.npy --model linear --device "$device" --batch 16 --epochs 1 --optimizer sgd \
    --clip-norm 0.5 --ema 0.75 --schedule one-cycle --mixup 0.25 --label-smoothing 0.125 --fuse off --log many.jsonl
tr -s ' \n' ' ' <err >told
grep -qF ', gradients clipped to norm 0.5; running averages of the parameters, decay 0.75' told || fail "the summary: $(cat err)"
grep -qF ', shuffled, mixed by Beta(0.25, 0.25), labels smoothed by 0.125' told || fail "the summary: $(cat err)"
setting() { head -n 1 many.jsonl | "$helper" json "$@" | tr '\n' ' '; }
same "settings in the log" "$(setting settings.clip_norm settings.ema_decay settings.schedule settings.mixup \
    settings.label_smoothing settings.fuse settings.precision settings.seed)" '0.5 0.75 one-cycle 0.25 0.125 off f32 1 '
# Many epochs at the usual period of few end with almost no rate: that is said.
works "$cleave" train --images x.npy --labels y.npy --model linear --device "$device" --batch 16 --epochs 30
tr -s ' \n' ' ' <err >told
grep -qF 'of 30 epochs the last 21 have a thousandth of the rate or less: --step-size 18, or --schedule cosine' told || fail "the schedule: $(cat err)"
# A training that goes on: the seconds of all its parts; and at the end rate and loss as the summary has them.
works train --epochs 3 --checkpoint c.ckpt --log on.jsonl
sed 's/"seconds":[0-9.e-]*/"seconds":100/' on.jsonl >on && mv on on.jsonl
works train --epochs 6 --resume c.ckpt --log on.jsonl --json
ended="$(at train_loss images_per_second)"
works "$cleave" top on.jsonl --json
same "the end" "$(at loss images_per_second)" "$ended"
works "$cleave" report -o page.html --log on.jsonl --quiet
grep -qF 'data-head="seconds">10' page.html || fail "the seconds of the first part are missing: $(grep -o 'data-head="seconds">[^<]*' page.html)"
printf '{"step":7,"steps":9,"epoch":2,"loss":null,"devices":{"<b>x":{}}}\n{"half' >>a.jsonl

works "$cleave" report --device "$device" --check --bench -o page.html --log a.jsonl --log 'b<script>"&.jsonl' --json --quiet
same "the result" "$(at file device failed logs not_measured | tr '\n' ' ')" "page.html $device 0 2 0 "
[ "$(at cases)" -gt 50 ] && [ "$(at measured)" -gt 0 ] || fail "nothing was checked or measured: $(cat out)"
head -n 1 page.html | grep -qx '<!doctype html>' || fail "no HTML"
tail -n 1 page.html | grep -qx '</main></body></html>' || fail "the page is not whole"
grep -qiE '<script|https?:|<link|<img|<iframe|javascript:|<b>x|[^-]src=' page.html && fail "markup from outside, or something to load"
grep -qF 'b&lt;script&gt;&quot;&amp;.jsonl' page.html || fail "the log's name is not there, escaped"
figures() { grep -o '<figcaption>[^<]*' page.html | sed 's/.*>//' | tr '\n' ','; }
same "figures" "$(figures)" "train loss,learning rate,images per second,device memory, MiB,"
same "curves" "$(grep -c '<path class="curve"' page.html)" 16 # two logs: four figures, two of them smoothed in two ways
[ "$(grep -c '<g class="at">' page.html)" -gt 8 ] || fail "no values under the pointer"
grep -qF 'style="fill:var(--c1)">' page.html || fail "no value of the second curve"
same "ways to smooth" "$(grep -c '<input class="smooth" type="radio"' page.html)" 3
# What differs in the settings comes first, and is marked; what does not is there too.
grep -qF '<td class="differs" data-head="setting">lr</td>' page.html || fail "the learning rates are not marked"
same "settings that differ" "$(grep -c 'class="differs"' page.html)" 1
grep -qF 'data-head="setting">optimizer</td>' page.html || fail "a setting that is the same is not told"
# A table's cells name their heads, for narrow screens, where nothing has to be moved sideways.
grep -q 'min-width:34rem' page.html && fail "a figure that is wider than a phone"
for tag in table tr td svg details div ul h2; do
    same "$tag" "$(grep -oE "<$tag[ >]" page.html | wc -l)" "$(grep -o "</$tag>" page.html | wc -l)"
done
for part in "Is it right?" "How fast is it?" "Trainings" "Where it ran" "prefers-color-scheme:dark" "name=\"viewport\""; do
    grep -qF "$part" page.html || fail "no '$part'"
done
# facts have words for names, and units
grep -oE '<th>[a-z0-9]+_[a-z0-9_]+' page.html && fail "names of fields are in the page"
grep -q '<th>memory limit</th>' page.html && grep -q '<th>processors usable</th>' page.html || fail "facts have other names"
grep -qE '<th>largest allocation</th><td class="wide">[0-9.]+ [KMG]iB' page.html || fail "the largest allocation has no unit"
grep -q "$HOME/" page.html && fail "a home folder is told"
cp a.jsonl twin.jsonl
# Equal curves are dashes by turns; a curve alone is whole. A test set has its figures.
works "$cleave" report -o page.html --log a.jsonl --log twin.jsonl --quiet
same "figures that have dashes" "$(grep -c 'stroke-dasharray:9 9;stroke-dashoffset:-9' page.html)" 8
same "the first of them" "$(grep -c 'stroke-dasharray:9 9;stroke-dashoffset:0' page.html)" 8
grep -q 'class="differs"' page.html && fail "a difference between twins"
works "$cleave" report -o page.html --log tested.jsonl --quiet
same "figures" "$(figures)" "train loss,test loss,test accuracy,learning rate,images per second,device memory, MiB,"
grep -q 'stroke-dasharray:9' page.html && fail "a curve alone is in dashes"
# Of trainings alone no device is looked at, and none is the title.
works "$cleave" report -o page.html --log tested.jsonl --json --quiet
same "the result" "$(at file device cases measured logs | tr '\n' ' ')" "page.html null 0 0 1 "
grep -qF '<title>Training of linear: tested.jsonl</title>' page.html || fail "the title is not the training's: $(grep -o '<title>.*</title>' page.html)"
for part in "Is it right?" "How fast is it?" "Where it ran"; do
    grep -qF "$part" page.html && fail "'$part' of a page of trainings"
done
expect 2 "--device is for --check and --bench" "$cleave" report -o page.html --log tested.jsonl --device host
# Labels of axes fit beside them: seven letters, however large the values are.
sed 's/"loss":[0-9.e+-]*/"loss":195193554862.08/; s/"step":\([0-9]*\)/"step":\1000000/' tested.jsonl >large.jsonl
works "$cleave" report -o page.html --log large.jsonl --quiet
grep -o 'text-anchor="[a-z]*">[^<]*' page.html | sed 's/.*>//' | grep -E '^-?[0-9.]+(e-?[0-9]+|M)?$' >labels
[ "$(wc -l <labels)" -gt 20 ] && [ "$(awk '{ if (length($0) > n) n = length($0) } END { print n }' labels)" -le 7 ] ||
    fail "labels are too long: $(cat labels)"
grep -qx 2e11 labels || fail "no label of 2e11: $(cat labels)"
works "$cleave" report --device "$device" --check --output page.html --quiet # over the one that is there
grep -q "Trainings" page.html && fail "trainings without a log"

expect 2 "where to? Give --output FILE.html (or -o)" "$cleave" report
expect 1 "cannot write 'nowhere/page.html': a file cannot be made in folder 'nowhere'" "$cleave" report -o nowhere/page.html
expect 1 "the log 'missing' cannot be opened" "$cleave" report -o page.html --log missing --quiet
expect 1 "'x.npy' is no log of a training" "$cleave" report -o page.html --log x.npy --quiet
cp page.html kept
expect 1 "cannot write 'page.html': it would become larger" sh -c 'ulimit -f 8; trap "" XFSZ; exec "$@"' sh "$cleave" report \
    --device host --no-cache -o page.html --quiet
cmp -s page.html kept || fail "a full disk changed the page that was there"
ls | grep -q 'page.html\.' && fail "temporary files were left"
finish
