#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Packages of this Debian, for another architecture or as sources, unpacked into a folder. By a root of apt's own: nothing of
# the system is changed, no architecture is added to it. Needs no rights.
#
#     debian.sh root ARCHITECTURE FOLDER PACKAGE...    with all that the packages depend on; good as --sysroot and for qemu -L
#     debian.sh source FOLDER PACKAGE...               each package's original source as FOLDER/PACKAGE
set -eu
kind=$1
shift
architecture=$(dpkg --print-architecture)
[ "$kind" = root ] && architecture=$1 && shift
folder=$1
shift
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
apt=$(mktemp -d)
trap 'rm -rf "$apt"' EXIT
mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/empty"
: >"$apt/status"
# Where this system has its own packages from.
# shellcheck disable=SC1091
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
signed=
[ ! -e /usr/share/keyrings/debian-archive-keyring.gpg ] || signed='signed-by=/usr/share/keyrings/debian-archive-keyring.gpg'
# shellcheck disable=SC2016  # apt's own words
apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' |
    awk -v release="$release" -v arch="$architecture" -v signed="$signed" -v kind="$kind" '
        $2 == release && $3 == "main" && !seen[$1]++ {
            print (kind == "root" ? "deb" : "deb-src") " [arch=" arch " " signed "] " $1 " " $2 " main" }' >"$apt/sources.list"
[ -s "$apt/sources.list" ] || { echo "debian.sh: apt knows no source of $release" >&2; exit 1; }
get() {
    apt-get -qq -o APT::Architecture="$architecture" -o APT::Architectures="$architecture" -o Dir::Etc::sourcelist="$apt/sources.list" \
        -o Dir::Etc::sourceparts="$apt/empty" -o Dir::State::lists="$apt/lists" -o Dir::State::status="$apt/status" \
        -o Dir::Cache="$apt/cache" -o APT::Sandbox::User= -o Debug::NoLocking=1 -o APT::Install-Recommends=0 \
        -o Acquire::Retries=3 -o Acquire::Languages=none "$@" </dev/null
}
get update
if [ "$kind" = root ]; then
    get install --download-only -y "$@" >"$apt/log" 2>&1 || { cat "$apt/log" >&2; exit 1; }
    for package in "$apt"/cache/archives/*.deb; do dpkg-deb -x "$package" "$folder"; done
    # Absolute links would lead out of the folder.
    find "$folder" -type l -lname '/*' | while read -r link; do
        ln -sfn "$(realpath -ms --relative-to="$(dirname "$link")" "$folder$(readlink "$link")")" "$link"
    done
else
    cd "$apt"
    for package; do
        get source --download-only --only-source "$package" >"$apt/log" 2>&1 || { cat "$apt/log" >&2; exit 1; }
        mkdir -p "$folder/$package"
        tar -xf "$apt/${package}"_*.orig.tar.* -C "$folder/$package" --strip-components=1
    done
fi
