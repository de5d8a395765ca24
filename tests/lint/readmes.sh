#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each folder that holds files says in a README.md what lives there. Folders of data for a test need none.
. "$(dirname "$0")/common.sh"
for folder in include/cleave runtime runtime/*/ backends backends/*/ kernels_cl tests tests/*/ samples tools docs; do
    folder=${folder%/}
    [ -d "$folder" ] || continue
    find "$folder" -maxdepth 1 -type f | grep -q . || continue
    [ -s "$folder/README.md" ] || finding "$folder: no README.md"
done
finish
