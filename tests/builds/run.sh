#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Cleave built in other ways than usual, on this machine, and what must hold of each.
#
# usage: run.sh CLEAVE HELPER BUILD...     builds: no-cmocka no-opencl no-images inference package
#
# CLEAVE is the command line of the dev preset, HELPER tests/e2e's. What is built lies in build/builds.
tree=$(cd "$(dirname "$0")/../.." && pwd)
whole=$(cd "$(dirname "$1")" && pwd)
tool=$(realpath "$1")
own=$(realpath "$2")
shift 2
wanted=$*
set -- "$tool" "$own"
. "$tree/tests/e2e/common.sh"
launcher=
command -v ccache >/dev/null && launcher=-DCMAKE_C_COMPILER_LAUNCHER=ccache
export CLEAVE_CACHE_DIR="$scratch/cache" CLEAVE_TUNING=none CLEAVE_VISIBLE_DEVICES= CLEAVE_PARTITION= CLEAVE_COMPILE_HELPER=

# configured NAME OPTION... : with the flags of the dev preset, so that sizes can be compared.
configured() {
    folder=$tree/build/builds/$1
    shift
    cmake -G Ninja -S "$tree" -B "$folder" $launcher -DCMAKE_BUILD_TYPE=None "-DCMAKE_C_FLAGS=-O2 -g" -DCLEAVE_WERROR=ON "$@" \
        >log 2>&1 || { fail "$folder cannot be configured: $(tail -n 5 log)"; return 1; }
}
# built TARGET...
built() {
    cmake --build "$folder" --target "$@" >log 2>&1 || { fail "$folder does not build: $(grep -m 5 -E 'error|undefined' log)"; return 1; }
}
# bytes FILE : without symbols and debug information.
bytes() { strip -o stripped "$1" && wc -c <stripped; }
# texts FILE : how many kernels are written in it.
texts() { grep -c -a '^__kernel void' "$1"; }

# Without cmocka there is a note and no test, and no error; a pkg-config that does not know it stands for a system without.
no_cmocka() {
    printf '#!/bin/sh\ncase " $* " in *cmocka*) exit 1 ;; esac\nexec %s "$@"\n' "$(command -v pkg-config)" >pkg-config
    chmod +x pkg-config
    rm -rf "$tree/build/builds/no-cmocka"
    configured no-cmocka -DCLEAVE_OPENCL=OFF "-DPKG_CONFIG_EXECUTABLE=$PWD/pkg-config" || return
    grep -q 'cmocka is not there: building without tests (Debian: libcmocka-dev)' log || fail "no-cmocka: no note in what CMake said"
    cmake --build "$folder" --target help >targets
    grep -q '^cleave_tool:' targets || fail "no-cmocka: there is no command line to build"
    grep '^test_' targets && fail "no-cmocka: there are tests to build"
    same "no-cmocka: tests" "$(ctest --test-dir "$folder" -N | tail -n 1)" 'Total Tests: 0'
    echo "no-cmocka: configured, $(grep -c '' targets) targets, no tests"
}

# Without OpenCL no kernel's text is in the library, and no driver's loader is asked for.
no_opencl() {
    [ "$(texts "$tool")" -gt 50 ] || fail "no-opencl: only $(texts "$tool") texts in a build with OpenCL: they are not found any more"
    configured no-opencl -DCLEAVE_OPENCL=OFF -DCLEAVE_TOKENIZERS=OFF -DCLEAVE_TESTS=OFF && built cleave_tool backends/libcleave.so backends/libcleave.a || return
    for file in "$folder/cleave" "$folder/backends/libcleave.so" "$folder/backends/libcleave.a"; do
        same "no-opencl: kernels' texts in ${file##*/}" "$(texts "$file")" 0
    done
    ldd "$folder/cleave" | grep -i opencl && fail "no-opencl: it wants OpenCL's loader"
    works "$folder/cleave" plan mlp --batch 2 --device host
    echo "no-opencl: $(bytes "$folder/cleave") bytes, with OpenCL $(bytes "$tool")"
}

# Without libjpeg and libpng.
no_images() {
    printf '#!/bin/sh\ncase " $* " in *libjpeg*) exit 1 ;; esac\nexec %s "$@"\n' "$(command -v pkg-config)" >pkg-config
    chmod +x pkg-config
    rm -rf "$tree/build/builds/no-images"
    configured no-images -DCLEAVE_OPENCL=OFF -DCLEAVE_TESTS=OFF "-DPKG_CONFIG_EXECUTABLE=$PWD/pkg-config" || return
    grep -q 'building without folders of pictures (Debian: libjpeg-dev libpng-dev)' log || fail "no-images: no note in what CMake said"
    built cleave_tool || return
    ldd "$folder/cleave" | grep -E 'libjpeg|libpng' && fail "no-images: it wants a library that decodes pictures"
    works "$folder/cleave" plan mlp --batch 2 --device host
    expect 1 'built without libjpeg and libpng; install both' "$folder/cleave" train images "$tree/tests/golden/images" --device host
    echo "no-images: $(bytes "$folder/cleave") bytes"
}

# equal DEVICE MODEL : predictions, accuracy and predicted memory of both tools.
equal() {
    works "$cleave" train --images x.npy --labels y.npy --model "$2" --device "$1" --batch 8 --steps 3 --quiet --save w.safetensors
    for who in "$cleave" "$folder/cleave"; do
        [ "$who" = "$cleave" ] && side=whole || side=small
        works "$who" run --model "$2" --weights w.safetensors --input x.npy --batch 8 --device "$1" -o $side.npy --json
        works "$who" eval --images x.npy --labels y.npy --model "$2" --weights w.safetensors --batch 8 --device "$1" --json
        at count correct test_loss >$side.eval
        works "$who" plan "$2" --batch 8 --device "$1" --json
        at devices.0.predicted_peak_bytes launches >$side.plan
    done
    cmp whole.npy small.npy || fail "inference: other predictions of $2 on $1"
    same "inference: eval of $2 on $1" "$(cat small.eval)" "$(cat whole.eval)"
    same "inference: plan of $2 on $1" "$(cat small.plan)" "$(cat whole.plan)"
}

# Programs in C that use the package: one predicts, one would train.
programs() {
    cmake --install "$folder" --prefix "$PWD/prefix" >log 2>&1 || { fail "inference: it does not install"; return; }
    PKG_CONFIG_PATH=$(dirname "$(find "$PWD/prefix" -name cleave.pc)")
    export PKG_CONFIG_PATH
    printf '#include <cleave/cleave.h>\nint main(void) { clv_backward(0); return 0; }\n' >trains.c
    # shellcheck disable=SC2046  # words on purpose
    if ${CC:-cc} trains.c $(pkg-config --cflags --libs cleave) -o trains 2>err; then
        fail "inference: a program that trains is built"
    elif ! grep -q 'this Cleave is built for inference alone' err; then
        echo "inference: this compiler cannot refuse, the linker does: $(tail -n 1 err)"
    fi
    "$tree/tests/consumer/run.sh" "$folder" >log 2>&1 || fail "inference: tests/consumer: $(tail -n 3 log)"
    "$tree/tests/lint/symbols.sh" "$folder/backends/libcleave.so" "$tree/include" inference >log || fail "inference: $(cat log)"
}

inference() {
    configured inference -DCLEAVE_INFERENCE=ON && built all || return
    "$helper" images 12 x.npy && "$helper" labels 12 y.npy || fail "no data"
    equal host mlp
    if "$cleave" devices --json | grep -q '"type": "cpu"'; then
        equal cpu cnn
    fi
    expect 2 "built for inference alone (CLEAVE_INFERENCE) and has no 'train'" "$folder/cleave" train
    expect 2 "built for inference alone" "$folder/cleave" plan mlp --train
    for command in devices eval run plan env cache; do works "$folder/cleave" $command --help; done
    works "$folder/cleave" env --json
    same "inference: env" "$(at cleave.inference)" true
    grep -a -q 'sum_squares' "$tool" || fail "inference: sum_squares is no kernel any more: look for another one"
    grep -a -q 'sum_squares' "$folder/cleave" && fail "inference: texts of gradients are in it"
    programs
    for file in cleave backends/libcleave.so; do
        large=$(bytes "$whole/$file") small=$(bytes "$folder/$file")
        [ $((small * 100)) -lt $((large * 80)) ] || fail "inference: $file has $small bytes, the whole $large: hardly smaller"
        echo "inference: $file has $small bytes, $((100 - small * 100 / large)) % less than the whole"
    done
}

# left FOLDER : files that are there, but for those of dpkg.
left() { find "$1" \( -path "$1/var" -o -path "$1/etc" \) -prune -o ! -type d -print; }

# What is installed, and taken out again; and as a package of Debian, in a root of its own.
package() {
    configured package -DCLEAVE_TESTS=OFF -DCMAKE_INSTALL_PREFIX=/usr && built all || return
    version=$("$folder/cleave" --version | sed 's/cleave //')
    cmake --install "$folder" --prefix "$PWD/there" >log 2>&1 || { fail "package: it does not install: $(tail -n 2 log)"; return; }
    for file in bin/cleave share/doc/cleave/LICENSE share/doc/cleave/README.md share/doc/cleave/docs/getting-started.md \
        share/doc/cleave/samples/train_mlp.c share/man/man1/cleave.1 share/bash-completion/completions/cleave \
        share/zsh/vendor-completions/_cleave share/fish/vendor_completions.d/cleave.fish; do
        [ -s "there/$file" ] || fail "package: $file is not installed"
    done
    for command in $("$folder/cleave" --complete '' | cut -f 1 | grep -v -x -e help -e version); do
        grep -q "^.TH CLEAVE-" "there/share/man/man1/cleave-$command.1" || fail "package: there is no manual page of $command"
    done
    echo mine >there/share/doc/cleave/mine
    cmake --build "$folder" --target uninstall >log 2>&1 || fail "package: uninstall fails: $(tail -n 3 log)"
    same "package: what uninstall leaves" "$(left there)" there/share/doc/cleave/mine
    [ ! -d there/include/cleave ] || fail "package: uninstall leaves an empty folder"
    for need in cpack dpkg dpkg-shlibdeps fakeroot; do
        command -v $need >/dev/null || { echo "package: without a .deb, as there is no $need (Debian: dpkg-dev fakeroot)"; return; }
    done
    rm -f "$folder"/*.deb
    (cd "$folder" && cpack -G DEB) >log 2>&1 || { fail "package: cpack fails: $(tail -n 3 log)"; return; }
    deb=$(find "$folder" -maxdepth 1 -name "cleave_${version}*.deb")
    [ -s "$deb" ] || { fail "package: no .deb of version $version: $(tail -n 2 log)"; return; }
    for need in $(dpkg-deb -f "$deb" Depends | tr ',' '\n' | sed 's/^ *//;s/[ |].*//'); do
        dpkg-query -W -f='${db:Status-Status}\n' "$need" 2>/dev/null | grep -qx installed || fail "package: it depends on $need, which was not needed to build it"
    done
    dpkg-deb -f "$deb" Depends | grep -q libjansson || fail "package: it does not depend on jansson"
    mkdir -p root/var/lib/dpkg/info root/var/lib/dpkg/updates root/var/lib/dpkg/triggers && : >root/var/lib/dpkg/status
    # Its dependencies are this system's, not the root's.
    in_root() { fakeroot dpkg --root="$PWD/root" --log=/dev/null --force-depends --force-script-chrootless "$@" >log 2>&1; }
    in_root --install "$deb" || { fail "package: dpkg does not install it: $(tail -n 3 log)"; return; }
    same "package: the command's version" "$(root/usr/bin/cleave --version)" "cleave $version"
    works root/usr/bin/cleave plan mlp --batch 2 --device host
    printf '#include <cleave/cleave.h>\n#include <stdio.h>\nint main(void) { return puts(clv_version()) < 0; }\n' >uses.c
    libraries=$(dirname "$(find root -name libcleave.so)")
    # shellcheck disable=SC2046  # words on purpose
    PKG_CONFIG_PATH=$PWD/$libraries/pkgconfig ${CC:-cc} uses.c $(PKG_CONFIG_PATH=$PWD/$libraries/pkgconfig pkg-config --cflags --libs cleave) -o uses ||
        fail "package: a program cannot be built against it"
    same "package: the library's version" "$(LD_LIBRARY_PATH=$libraries ./uses)" "$version"
    in_root --purge cleave || fail "package: dpkg does not remove it: $(tail -n 3 log)"
    same "package: what removing leaves" "$(left root)" ''
    echo "package: $(wc -c <"$deb") bytes, depends on $(dpkg-deb -f "$deb" Depends)"
}

for build in $wanted; do
    case $build in
    package) package ;;
    no-cmocka) no_cmocka ;;
    no-opencl) no_opencl ;;
    no-images) no_images ;;
    inference) inference ;;
    *) fail "nobody knows this build: $build" ;;
    esac
done
finish
