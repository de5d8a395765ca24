#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A file of each kind that people have, given to each option that takes a file of another kind: one sentence, which says what it is.
. "$(dirname "$0")/common.sh"
golden=$(cd "$(dirname "$0")/../golden" && pwd)
"$helper" images 2 array.npy && "$helper" labels 2 labels.npy || fail "no arrays"
works "$cleave" train --images array.npy --labels labels.npy --model linear --device host --steps 1 --save weights.safetensors --quiet
cp "$golden/io/torch.pth" . && cp "$golden/io/arrays.npz" . && cp "$golden/images/png/tiny.png" picture.png || fail "no golden files"
printf 'GGUF\003\000\000\000%064d' 0 >model.gguf
printf '\211HDF\r\n\032\n%064d' 0 >model.h5
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n' >pointer
printf '\n<!DOCTYPE html>\n<html>404 Not Found</html>\n' >page
printf '\200\004}\224.' >list.pkl
printf 'PAR1%064d' 0 >table.parquet
printf 'a text' | gzip >packed.gz
printf 'PK\003\004\024%064d' 0 >sheet.xlsx
printf 'SQLite format 3\000%064d' 0 >data.db
printf 'some words of a text\n' >words
printf 'a,b\n1,2\n' >houses.csv
printf '{"hidden_size": 768}' >config.json
printf 'BM\206\000\000\000\000\000\000\000\066\000\000\000%064d' 0 >picture.bmp
printf 'II*\000\010\000\000\000%064d' 0 >picture.tif

# What a file is called, and its name.
kinds="torch.pth=a_PyTorch_file arrays.npz=an_archive_of_numpy_arrays array.npy=an_array_of_numpy weights.safetensors=a_safetensors_file
    model.gguf=a_GGUF_file model.h5=an_HDF5_file pointer=a_Git_LFS_pointer page=a_web_page list.pkl=a_pickle picture.png=a_picture
    table.parquet=a_Parquet_table packed.gz=a_file_packed_by_gzip sheet.xlsx=a_workbook data.db=a_database
    picture.bmp=a_picture picture.tif=a_picture config.json=JSON houses.csv=a_text,_most_likely_a_table words=a_text"
# refuses "FILES THAT ARE RIGHT" WANTED COMMAND... : each kind, as `given`, is named, and so is what is wanted.
refuses() {
    refuses_but=" $1 " refuses_wanted=$2
    shift 2
    for kind in $kinds; do
        case $refuses_but in *" ${kind%%=*} "*) continue ;; esac
        cp "${kind%%=*}" given || fail "there is no ${kind%%=*}"
        expect 1 "' is $(echo "${kind#*=}" | tr _ ' ')" "$@"
        grep -qF "$refuses_wanted" err || fail "${kind%%=*}: not what is wanted: $(cat err)"
    done
}
refuses weights.safetensors '' "$cleave" eval --images array.npy --labels labels.npy --model linear --device host --weights given
refuses weights.safetensors 'a checkpoint is wanted' "$cleave" train --images array.npy --labels labels.npy --model linear --device host --quiet --resume given
refuses array.npy 'an .npy file of one array is wanted' "$cleave" run --model linear --device host --weights weights.safetensors --input given --output o.npy
refuses array.npy 'an .npy file of one array is wanted' "$cleave" train --images given --labels labels.npy --model linear --device host --quiet
refuses array.npy 'an .npy file of one array is wanted' "$cleave" train --images array.npy --labels given --model linear --device host --quiet
refuses 'arrays.npz sheet.xlsx' 'an .npz file or a folder of .npy files is wanted' "$cleave" train arrays given --target y --model linear --device host --quiet
refuses 'houses.csv words' 'a table of separated values is wanted' "$cleave" train csv given --target y --device host --quiet
expect 1 "'pointer' is a Git LFS pointer" "$cleave" train text pointer --model gpt --device host --quiet
expect 1 "): it is an archive of numpy arrays (.npz); tokens that are bytes (--vocabulary bytes) take any file" "$cleave" train text arrays.npz --device host --quiet
expect 1 "the text is not UTF-8 (byte 0): it is a picture;" "$cleave" train text picture.png --device host --quiet
printf 'not so \377 much of a text' >bytes
expect 1 "the text is not UTF-8 (byte 7); tokens" "$cleave" train text bytes --device host --quiet
if ! "$cleave" train text words --tokenizer words --model gpt --device host --quiet 2>&1 | grep -q 'without PCRE2'; then
    refuses 'pointer config.json houses.csv words' 'a tokenizer.json is wanted' "$cleave" train text words --tokenizer given --model gpt --device host --quiet
fi
expect 1 "weights.safetensors' is no checkpoint but a file of weights: --weights weights.safetensors begins with them" "$cleave" train --images array.npy --labels labels.npy --model linear --device host --resume weights.safetensors
grep -q '^training' err && fail "the training is told before its checkpoint is looked at: $(cat err)"
for kind in $kinds words=x; do
    expect 2 "'${kind%%=*}' is no shared library" "$cleave" train fashion-mnist --model linear --ops "${kind%%=*}"
done
expect 2 "nowhere.so" "$cleave" train fashion-mnist --model linear --ops nowhere.so
[ -e o.npy ] && fail "a failed run left an output"

# Weights of a program's own model: what makes them usable, and that it does.
"$helper" images 32 x.npy && "$helper" labels 32 y.npy || fail "no arrays"
works "$cleave" train --images x.npy --labels y.npy --model mlp --device host --steps 1 --save mlp.safetensors --quiet
sed 's/"cleave.model":"mlp"/"cleave.model":"net"/' mlp.safetensors >net.safetensors
for command in "train --images x.npy --labels y.npy --steps 1" "eval --images x.npy --labels y.npy" "run --input x.npy -o o.npy" "run csv houses.csv -o o.csv"; do
    # shellcheck disable=SC2086
    expect 2 "'net.safetensors' holds weights of 'net', which is no built-in model: --ops FILE loads a library (.so) that registers it; or --model mlp, which has tensors of the same names and shapes" \
        "$cleave" $command --weights net.safetensors --device host
done
expect 1 "\`cleave run --input FILE --weights net.safetensors --model mlp\` takes them" "$cleave" run csv houses.csv -o o.csv --weights net.safetensors --model mlp --device host
expect 1 "\`cleave run --input FILE --weights net.safetensors --ops FILE\` takes them" "$cleave" generate --weights net.safetensors --prompt x --device host
for weights in mlp net; do
    works "$cleave" run --input x.npy -o $weights.npy --weights $weights.safetensors --model mlp --device host
    works "$cleave" eval --images x.npy --labels y.npy --weights $weights.safetensors --model mlp --device host
done
cmp -s mlp.npy net.npy || fail "the same weights give another result"
expect 1 "unexpected 'fc1.bias'" "$cleave" run --input x.npy -o o.npy --weights net.safetensors --model linear --device host
sed 's/"fc2.bias"/"fcx.bias"/' net.safetensors >other.safetensors
expect 2 "holds weights of 'net', which is no built-in model: --ops FILE loads a library (.so) that registers it" "$cleave" run --input x.npy -o o.npy --weights other.safetensors --device host
grep -q -- --model err && fail "a model that does not fit is named: $(cat err)"
rm -f o.npy

# Weights that are given where those of something else are wanted: what they are of, and the command that takes them, of each pair.
mkdir each && cd each || exit 1
awk 'BEGIN { print "area,city,price"; for (i = 0; i < 30; i++) printf "%d,%s,%d\n", i * 37 % 101, i % 3 ? "York" : "Bath", i * 1300 }' >houses.csv
i=0
while [ $i -lt 20 ]; do echo "In the beginning were $i words."; i=$((i + 1)); done >text.txt
"$helper" fields 20 d.npz && mkdir idx && "$helper" idx idx 20 && mkdir -p f/one f/two || fail "no data"
cp "$golden"/images/jpeg/*.[jJ]* f/one && cp "$golden"/images/png/*.[pP]* f/two || fail "no pictures"
learn() { "$cleave" train "$@" --device host --steps 1 --quiet; }
csv="csv houses.csv" text="text text.txt" images="images f" arrays="arrays d.npz" named="fashion-mnist --data idx"
# shellcheck disable=SC2086  # words of a command
{
    works learn $csv --target price --save csv.st
    works learn $text --context 8 --width 16 --heads 2 --layers 1 --save text.st
    works learn $arrays --target kind,price --model linear --save arrays.st
    works learn $named --model linear --save named.st
}
have="csv text arrays named"
if learn images f --model mlp --image-size 12 --save images.st >out 2>&1; then have="$have images"; else in_part "$(tail -n 1 out)"; fi
of_csv="a table with the columns area, city, rows of 3 numbers" of_text="a text" of_arrays="named arrays with the inputs a [2], b" of_named="samples [1,28,28]"
of_images="pictures with the classes one, two"
train_csv="train csv FILE" eval_csv="eval csv FILE" run_csv="run csv FILE" generate_csv=$run_csv
train_text="train text FILE" eval_text="eval text FILE" run_text="generate --prompt TEXT"
train_images="train images FOLDER" eval_images="eval images FOLDER" run_images="run images FILE" generate_images=$run_images
train_arrays="train arrays FILE" eval_arrays="eval arrays FILE" run_arrays="run arrays FILE" generate_arrays=$run_arrays
train_named="train --images FILE --labels FILE" eval_named="eval --images FILE --labels FILE" run_named="run --input FILE" generate_named=$run_named
pairs=0
wrong() { # KIND COMMAND WORDS...
    eval "of=\$of_$1 takes=\$$2_$1"
    weights=$1.st command=$2
    shift 2
    expect 1 "'$weights' holds weights of $of: \`cleave $takes --weights $weights\` takes them" "$cleave" "$command" "$@" --weights "$weights" --device host
    pairs=$((pairs + 1))
}
for kind in $have; do
    for given in csv text images arrays named; do
        [ $kind = $given ] && continue
        eval "words=\$$given"
        case $given in csv | arrays) target="--target price" ;; *) target= ;; esac
        case $kind-$given in named-arrays | images-arrays) ;; # the names say which array is what
        *) # shellcheck disable=SC2086
            wrong $kind eval $words
            wrong $kind train $words $target ;;
        esac
        case $given in named | text) continue ;; esac
        # shellcheck disable=SC2086
        wrong $kind run $words -o out
    done
    [ $kind = text ] || wrong $kind generate --prompt In
done
case $have in *images) same "pairs" $pairs 52 ;; esac
expect 1 "'houses.csv' is no picture, nor a folder of them: \`cleave train csv houses.csv\` takes it" "$cleave" train images houses.csv
expect 1 "'houses.csv' is no picture: \`cleave run csv houses.csv\` takes it" "$cleave" run images houses.csv --weights named.st
# The folder a folder is in; an ending that two files have does not make them alike.
mkdir -p shapes/val && : >shapes/more.npz
expect 1 "cannot read the folder 'shaeps/val': No such file or directory; did you mean 'shapes/val'?" "$cleave" train images shaeps/val --device "$device"
expect 1 "'shapes/moer.npz': No such file or directory; did you mean 'shapes/more.npz'?" "$cleave" train arrays shapes/moer.npz --target y --device "$device"
expect 1 "'shapes/nope.npz': No such file or directory" "$cleave" train arrays shapes/nope.npz --target y --device "$device"
! grep -q 'did you mean' err || fail "a guess too far away: $(cat err)"
expect 1 "cannot read the folder 'shapes/vla': No such file or directory; did you mean 'shapes/val'?" \
    "$cleave" train images f --val shapes/vla --device host
expect 2 "which arrays are to be learnt?" "$cleave" eval arrays d.npz --weights named.st --device host
finish
