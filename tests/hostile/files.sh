# SPDX-License-Identifier: Apache-2.0
# Makes the hostile files in the working folder, each by the name that cases.txt uses. Sourced; nothing here comes from elsewhere.

# long N : eight bytes, the lowest first.
long() {
    long_n=$1 long_bytes=
    for long_i in 1 2 3 4 5 6 7 8; do
        long_bytes=$long_bytes$(printf '\\%03o' $((long_n & 255)))
        long_n=$((long_n >> 8))
    done
    printf "$long_bytes"
}
# tensors NAME HEADER BYTES : a safetensors file with this header and so many zero bytes after it.
tensors() {
    { long "$(printf '%b' "$2" | wc -c)" && printf '%b' "$2" && head -c "$3" /dev/zero; } >"$1.safetensors"
}
# array NAME HEADER BYTES : a .npy file of version 1.0.
array() {
    array_n=$(printf '%b\n' "$2" | wc -c)
    { printf "\\223NUMPY\\001\\000\\$(printf %03o $((array_n & 255)))\\$(printf %03o $((array_n >> 8)))" && printf '%b\n' "$2" && head -c "$3" /dev/zero; } >"$1.npy"
}
nested() { awk -v n="$1" -v a="$2" -v b="$3" 'BEGIN { for (i = 0; i < n; i++) printf "%s", a; for (i = 0; i < n; i++) printf "%s", b }'; }

# ---- safetensors --------------------------------------------------------------------------------------------------------
w='"fc.weight":{"dtype":"F32","shape":[10,784],"data_offsets":[0,31360]}' b='"fc.bias":{"dtype":"F32","shape":[10],"data_offsets":[31360,31400]}'
tensors good "{$w,$b}" 31400
: >empty.safetensors
printf 'seven b' >seven.safetensors
{ long 9223372036854775807 && printf '{}'; } >header-huge.safetensors
{ printf '\377\377\377\377\377\377\377\377' && printf '{}'; } >header-negative.safetensors
{ long 100 && printf '{}'; } >header-beyond.safetensors
{ long 0; } >header-none.safetensors
tensors header-words 'not json at all' 0
tensors header-list '[1,2]' 0
tensors header-nothing '{}' 0
tensors header-cut '{"fc.weight":{"dtype":"F32"' 0
tensors header-twice "{$b,$b}" 31400
tensors header-deep "$(nested 2000 '[' ']')" 0
tensors header-null '{"a\\u0000b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}' 4
tensors header-not-utf8 '{"a\0377b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}' 4
tensors header-number '{"a":1}' 0
tensors overlap '{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}' 12
tensors hole '{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}}' 12
tensors reversed '{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}}' 4
tensors negative '{"a":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}}' 4
tensors fraction '{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4.5]}}' 8
tensors beyond '{"a":{"dtype":"F32","shape":[100],"data_offsets":[0,400]}}' 4
tensors behind '{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}' 400
tensors three-offsets '{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}}' 8
tensors no-dtype '{"a":{"shape":[1],"data_offsets":[0,4]}}' 4
tensors dtype '{"a":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}}' 4
tensors dtype-codes '{"a":{"dtype":"\\u001b[31m","shape":[1],"data_offsets":[0,4]}}' 4
tensors shape-negative '{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}' 4
tensors shape-overflow '{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]}}' 4
tensors shape-zero-overflow '{"a":{"dtype":"F32","shape":[0,9223372036854775807,9223372036854775807],"data_offsets":[0,0]}}' 0
tensors shape-rank-9 '{"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}}' 4
tensors shape-words '{"a":{"dtype":"F32","shape":"1","data_offsets":[0,4]}}' 4
tensors shape-large-number '{"a":{"dtype":"F32","shape":[1e300],"data_offsets":[0,4]}}' 4
tensors shape-not-bytes '{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,4]}}' 4
tensors name-codes '{"\\u001b]0;owned\\u0007\\u202e":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}' 4
tensors name-long "{\"$(nested 3000 ab cd)\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}" 4
tensors name-path '{"../../etc/passwd":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}' 4
tensors name-none "{\"\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}" 4
tensors metadata-number "{\"__metadata__\":{\"a\":1},$w,$b}" 31400
tensors metadata-list "{\"__metadata__\":[],$w,$b}" 31400
tensors other-shape "{\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[784,10],\"data_offsets\":[0,31360]},$b}" 31400
tensors other-type '{"fc.weight":{"dtype":"I64","shape":[10,784],"data_offsets":[0,62720]},"fc.bias":{"dtype":"F32","shape":[10],"data_offsets":[62720,62760]}}' 62760
tensors more "{$w,$b,\"fc.more\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[31400,31404]}}" 31404
head -c 20000 good.safetensors >cut.safetensors
printf 'PK\003\004' >zip.safetensors
printf '\200\002\212\012l\374\234F\371 j\250P\031.' >pickle.pth
printf '<html>404 Not Found</html>' >page.safetensors
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n' >pointer.safetensors

# ---- .npy ---------------------------------------------------------------------------------------------------------------
h="{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1, 28, 28), }"
array images "$h" 6272
array labels "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }" 8
printf '\223NUMPY' >magic.npy
printf '\223NUMPY\011\000\004\000{}  ' >version.npy
printf '\223NUMPY\001\000\377\377{}' >header-beyond.npy
printf '\223NUMPY\003\000\377\377\377\377{}' >header-huge.npy
array header-list "[1, 2]" 0
array header-code "__import__('os').system('touch owned')" 0
array header-no-shape "{'descr': '<f4', 'fortran_order': False}" 4
array header-twice "{'descr': '<f4', 'descr': '<f8', 'fortran_order': False, 'shape': (1,)}" 8
array header-open "{'descr': '<f4', 'fortran_order': False, 'shape': (1," 4
array objects "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }" 8
array big-endian "{'descr': '>f4', 'fortran_order': False, 'shape': (2, 1, 28, 28), }" 6272
array complex "{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }" 8
array text "{'descr': '<U4', 'fortran_order': False, 'shape': (1,), }" 16
array columns "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 1, 28, 28), }" 6272
array structured "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }" 4
array dtype-codes "{'descr': '\\033[2J', 'fortran_order': False, 'shape': (1,), }" 4
array shape-negative "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }" 4
array shape-overflow "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 4), }" 4
array shape-digits "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999999999,), }" 4
array shape-rank-9 "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }" 4
array shape-none "{'descr': '<f4', 'fortran_order': False, 'shape': (), }" 4
array shape-zero "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 1, 28, 28), }" 0
array shape-empty "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 1, 28, 0), }" 0
array shape-empty-flat "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 0), }" 0
array shape-empty-large "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4611686018427387904, 4611686018427387904), }" 0
array shape-large-empty "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4611686018427387904, 0), }" 0
array empty-labels "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 0), }" 0
array one-hot "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 10), }" 80
array column "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }" 8
array nhwc "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 28, 28, 1), }" 6272
array other-size "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1, 27, 28), }" 6048
array behind "$h" 6276
array cut "$h" 6000
array three-labels "{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }" 12
array float-labels "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }" 8
{ head -c -8 labels.npy && printf '\001\000\000\000\012\000\000\000'; } >label-10.npy
{ head -c -8 labels.npy && printf '\001\000\000\000\377\377\377\377'; } >label-minus.npy

# ---- IDX, in a folder as of the data set ----------------------------------------------------------------------------------
# idx FOLDER BYTES : the training images are these bytes, not compressed; the other files are right, of two images.
idx() {
    mkdir -p "$1"
    for idx_of in train t10k; do
        { printf '\000\000\010\003\000\000\000\002\000\000\000\034\000\000\000\034' && head -c 1568 /dev/zero; } >"$1/$idx_of-images-idx3-ubyte"
        printf '\000\000\010\001\000\000\000\002\001\002' >"$1/$idx_of-labels-idx1-ubyte"
    done
    [ "$2" = right ] || printf "$2" >"$1/train-images-idx3-ubyte"
}
idx idx-right right
idx idx-empty ''
idx idx-magic 'not an idx file at all'
idx idx-type '\000\000\007\003\000\000\000\002\000\000\000\034\000\000\000\034'
idx idx-rank '\000\000\010\011\000\000\000\001'
idx idx-overflow '\000\000\010\003\377\377\377\377\377\377\377\377\377\377\377\377'
idx idx-cut '\000\000\010\003\000\000\000\002\000\000\000\034\000\000\000\034\001\002'
idx idx-size '\000\000\010\003\000\000\000\002\000\000\000\002\000\000\000\002\001\002\003\004\001\002\003\004'
idx idx-none right && rm idx-none/t10k-labels-idx1-ubyte
idx idx-label right && printf '\000\000\010\001\000\000\000\002\001\377' >idx-label/train-labels-idx1-ubyte
idx idx-count right && printf '\000\000\010\001\000\000\000\003\001\002\003' >idx-count/train-labels-idx1-ubyte
idx idx-gzip right && printf '\037\213\010\000garbage' >idx-gzip/train-images-idx3-ubyte.gz
idx idx-folder right && rm idx-folder/train-images-idx3-ubyte && mkdir idx-folder/train-images-idx3-ubyte
idx idx-bomb right && { printf '\000\000\010\003\000\000\000\002\000\000\000\034\000\000\000\034' && head -c 30000000 /dev/zero; } | gzip -1 >idx-bomb/train-images-idx3-ubyte.gz

# ---- logs, results, tuning, special files ---------------------------------------------------------------------------------
printf 'no log\n' >words.jsonl
head -c 4096 /dev/zero >zeros.jsonl
{ nested 5000 '[' ']' && echo; } >deep.jsonl
mkdir -p folder && ln -sf loop loop && mkfifo pipe
printf 'ELF\177\000' >binary.jsonl
printf '%s\n' '{"device": "<script>alert(1)</script>", "label": "<img src=x onerror=alert(1)>", "seed": 1, "results": [{"name": "<x>", "op": "</td><script>x</script>", "verdict": "failed", "sentence": "\"&<b>"}]}' >markup.json
printf '%s\n' '{"device": "d", "results": {}}' >results-object.json
printf '%s\n' '{"results": []}' >results-no-device.json
{ nested 3000 '{"a":' '1' && echo; } >results-deep.json
printf '%s\n' '{"device": "\u001b[2J\u0007", "results": [{"name": "\u001b]0;x\u0007", "op": "\u202e", "verdict": "failed", "sentence": "\u009b2J"}]}' >results-codes.json
nested 100000 x '' >long-name
