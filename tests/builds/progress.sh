#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/build.sh says how far it is where its output is a pipe, and ends with what cmake ended with. The cmake here is made up.
set -eu
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/tools" "$root/bin"
cp "$1/tools/build.sh" "$root/tools/"
cat >"$root/bin/cmake" <<'END'
#!/bin/sh
[ "$1" = --build ] || exit 0
echo '[120/796] Building C object'
sleep 3
exit ${FAKE_CODE:-0}
END
chmod +x "$root/bin/cmake"
PATH="$root/bin:$PATH" "$root/tools/build.sh" release 2>&1 | cat >"$root/said"
for wanted in 'Building preset release; what is said stands in build/release.log' 'building release: 120/796 after 2 s' 'Built preset release in '; do
    grep -qF "$wanted" "$root/said" || { echo "not told: $wanted"; cat "$root/said"; exit 1; }
done
if FAKE_CODE=3 PATH="$root/bin:$PATH" "$root/tools/build.sh" release >"$root/said" 2>&1; then
    echo "a build that failed was none"
    exit 1
fi
grep -qF 'The build of preset release failed' "$root/said" && grep -qF '[120/796]' "$root/said" || { cat "$root/said"; exit 1; }
