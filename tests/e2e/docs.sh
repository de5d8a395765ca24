#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The pages of docs/ do what they say: each block that begins with ```sh run is run, line by line, in a folder of its page's own with small
# made-up data, and its Python too. Commands stand as in the page; so that they take seconds, what a reader leaves to defaults is made small here (see `cleave`).
# docs/command-line.md is what the tool prints; docs/pytorch.md has a module for each model, and cells as Cleave reads them.
pages=$(cd "$(dirname "$0")/../../docs" && pwd)
pictures=$(cd "$(dirname "$0")/../golden/images" && pwd)
. "$(dirname "$0")/common.sh"

tool=$cleave
# lacks OPTION... : is none of these among the words of the command?
lacks() {
    for lacks_option; do
        case " $words " in *" $lacks_option "*) return 1 ;; esac
    done
}
# cleave WORDS... : the tool on the host, with few samples and steps, and small pictures and texts, where the words do not say otherwise.
cleave() {
    words=$*
    command=${1:-}
    case $command in train | eval | run | generate | bench | plan | check)
        lacks --device --place --replicas --list && set -- "$@" --device host ;;
    esac
    [ "$command" = train ] && lacks --steps --epochs --patience && set -- "$@" --steps 2
    case $command in train | eval | run) lacks --batch && set -- "$@" --batch 5 ;; esac
    [ "$command" = generate ] && lacks --length && set -- "$@" --length 8
    case $words in
    *' images '*) lacks --image-size && set -- "$@" --image-size 16 ;;
    'train text '*) lacks --context && set -- "$@" --context 8 ;;
    esac
    case $words in 'train images '*) lacks --model && set -- "$@" --model linear ;; esac
    "$tool" "$@"
}

# python3 WORDS... : the examples in Python, where there is what they need.
python_with torch,PIL
[ -n "$python" ] || in_part "there is no python3 with torch and PIL: the examples of docs/pytorch.md"
python3() { [ -z "$python" ] || command "$python" "$@"; }

# data : what the pages speak of.
data() {
    awk 'BEGIN { print "area,rooms,year,town,price"
        for (i = 0; i < 60; i++) { a = 40 + i * 7 % 90; r = 1 + i % 5; print a "," r "," 1950 + i "," (i % 3 ? "Ulm" : "Bonn") "," 1000 * (2 * a + 15 * r) } }' >houses.csv
    cut -d, -f1-4 houses.csv | head -n 9 >rows.csv
    mkdir fashion
    "$helper" images 12 x.npy && "$helper" labels 12 y.npy && "$helper" labels 12 y5.npy %5+0 &&
        "$helper" fields 40 data.npz && "$helper" fields 12 more.npz && "$helper" idx fashion 12 0=0 || fail "no data"
    export CLEAVE_DATA_DIR=$PWD/fashion
    for part in train val; do
        mkdir -p pets/$part/cat pets/$part/dog
        cp "$pictures"/jpeg/*.[jJ]* pets/$part/cat && cp "$pictures"/png/*.[pP]* pets/$part/dog || fail "no pictures"
    done
    printf 'file,furry,young\ntrain/cat/color.jpg,1,0\ntrain/cat/grey.jpg,1,1\ntrain/dog/color.png,0,1\ntrain/dog/wide.png,0,0\n' >train.csv
    printf 'file,furry,young\nval/cat/color.jpg,1,0\nval/dog/wide.png,0,0\n' >val.csv
    i=0
    while [ $i -lt 40 ]; do echo "In the beginning were $i words, and the words were many."; i=$((i + 1)); done >book.txt
}

# lines PAGE : the commands of its blocks that are to be run, as NUMBER:command. Those that want what the examples in Python make have a word more.
lines() { awk -v python="$python" '/^```/ { inside = $0 == "```sh run" || (python && $0 == "```sh run python"); next } inside && NF { print FNR ":" $0 }' "$1"; }

for page in "$pages"/*.md; do
    name=$(basename "$page" .md)
    if [ "$name" != README ] && [ "$name" != design ] && [ "$name" != glossary ]; then
        sed -n 3p "$page" | grep -q '^You ' || fail "$name.md does not begin with what one wants to do"
    fi
    lines "$page" >"$scratch/lines"
    [ -s "$scratch/lines" ] || continue
    mkdir "$scratch/$name" && cd "$scratch/$name" && data
    examples "$page"
    "$tool" train images pets/train --model linear --image-size 4 --device host --steps 1 --quiet >"$scratch/out" 2>&1 ||
        grep -v 'images' "$scratch/lines" >"$scratch/without" && mv "$scratch/without" "$scratch/lines" 2>/dev/null
    while IFS= read -r line <&3; do
        command=${line#*:}
        # shellcheck disable=SC2294  # a line of shell is what the page holds
        (eval "$command") >"$scratch/out" 2>"$scratch/err" </dev/null ||
            fail "docs/$name.md:${line%%:*}: '$command' fails: $(tail -n 2 "$scratch/err")"
    done 3<"$scratch/lines"
    printf '%3d commands of docs/%s.md\n' "$(grep -c '' "$scratch/lines")" "$name"
    cd "$scratch" || exit 1
done

# scripts, for machines that are not here, are shell at least
for page in "$pages"/*.md; do
    awk '/^```/ { inside = $0 == "```bash"; next } inside' "$page" >script
    [ -s script ] || continue
    scripts_seen=yes
    bash -n script 2>err || fail "$(basename "$page"): $(cat err)"
done
[ -n "${scripts_seen:-}" ] || fail "no script in a block of \`\`\`bash"

# modules_of_all : models.py of docs/pytorch.md has a module for each model, and those that no command of the page trains tell what Cleave does.
modules_of_all() {
    export PYTHONPATH= # transformers comes with the package safetensors
    "$tool" models --json >models.json && python3 -c '
import json, torchvision, transformers
from models import MODELS
names = [model["name"] for model in json.load(open("models.json"))["models"]]
lacks = [name for name in names if name not in MODELS and not any(hasattr(of, name) for of in (torchvision.models, torchvision.models.segmentation))]
assert names and not lacks, lacks' || fail "models.py of docs/pytorch.md lacks a model"
    for model in gpt2 llama lstm_lm; do
        cleave train text book.txt --model $model --width 24 --heads 2 --layers 2 --save $model.safetensors --quiet >/dev/null 2>&1 &&
            cleave generate --weights $model.safetensors --prompt In --length 6 --temperature 0 --quiet >told.txt &&
            python3 text.py $model.safetensors In 6 told.txt >out 2>&1 || fail "PyTorch tells another text by $model: $(tail -n 1 out)"
    done
    python3 -c 'import torch, numpy; numpy.save("four.npy", torch.rand(4, 3, 32, 32).numpy()), numpy.save("of.npy", numpy.arange(4))'
    for model in resnet20 squeezenet1_1; do
        cleave train --images four.npy --labels of.npy --model $model --classes 4 --steps 1 --save $model.safetensors --quiet >/dev/null 2>&1 &&
            cleave run --input four.npy --weights $model.safetensors --output told.npy >out 2>&1 && python3 -c '
import sys, numpy, torch
from models import load
y = load(sys.argv[1])[0](torch.tensor(numpy.load("four.npy"))).detach().numpy()
assert abs(y - numpy.load("told.npy")).max() <= 1e-4 * max(1, abs(y).max())' $model.safetensors 2>out || fail "PyTorch tells another thing by $model: $(tail -n 1 out)"
    done
}

# cells_of_all : table.py takes as missing what Cleave does.
cells_of_all() {
    printf 'area,town,price\n80,Ulm,100\nNone,null,300\n60,Bonn,200\n#N/A N/A,-nan,100\n70,n/a,100\n,NA,50\n' >holes.csv
    cut -d, -f1,2 holes.csv >holes_to_run.csv
    cleave train csv holes.csv --target price --missing mean --validation 0 --save holes.safetensors --quiet >/dev/null 2>&1 &&
        cleave run csv holes_to_run.csv --weights holes.safetensors --output told.csv >out 2>&1 &&
        python3 table.py holes.safetensors holes_to_run.csv told.csv >out 2>&1 || fail "PyTorch tells other prices where cells are missing: $(tail -n 1 out)"
}
if [ -n "$python" ]; then
    cd "$scratch/pytorch" && cells_of_all
    if "$python" -c 'import torchvision, transformers' 2>/dev/null; then modules_of_all; else in_part "there is no torchvision or transformers: modules of docs/pytorch.md"; fi
    cd "$scratch" || exit 1
fi

"$tool" --markdown >page || fail "--markdown fails"
cmp -s page "$pages/command-line.md" || fail "docs/command-line.md is old; make it again: build/dev/cleave --markdown >docs/command-line.md"
finish
