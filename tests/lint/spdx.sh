#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every source says its licence in its first three lines.
. "$(dirname "$0")/common.sh"
for file in $(our_files '*.c' '*.h' '*.cl' '*.def' '*.cpp' '*.cmake' '*.in' '*.sh' '*.py' '*.supp' CMakeLists.txt run); do
    sed -n 1,3p "$file" | grep -q 'SPDX-License-Identifier: Apache-2\.0' || finding "$file:1: no SPDX line"
done
finish
