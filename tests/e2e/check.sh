#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cleave check and cleave cache: JSON as it is promised, an unknown op, a cache that is damaged or cannot be used.
. "$(dirname "$0")/common.sh"

works "$cleave" check --quick --device "$device" --json
same "failed" "$(at failed)" 0
same "passed" "$(at passed)" "$(at cases)"
[ "$(at cases)" -gt 200 ] || fail "only $(at cases) cases"
at skipped worst.0.op worst.0.variant worst.0.error worst.0.tolerance >/dev/null
works "$cleave" check --op softmax --device "$device"
grep -q 'softmax.*plan' out || fail "no table: $(cat out)"
expect 2 "no op 'sofmax'" "$cleave" check --op sofmax --device "$device"

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
