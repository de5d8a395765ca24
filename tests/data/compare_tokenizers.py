#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Are the tokens and texts of tokenizer.json files those of Hugging Face's tokenizers (PyPI: tokenizers), on many random texts? By hand: it
takes minutes. Exits with 1 where one is not, and shows the first.

    python3 -m venv V; V/bin/pip install tokenizers sentencepiece protobuf
    V/bin/python ../golden/make_tokenizers.py FOLDER
    V/bin/python compare_tokenizers.py build/dev/backends/libcleave.so FOLDER [TEXTS [SEED]]"""
import ctypes
import os
import random
import sys

from tokenizers import Tokenizer

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden"))
from make_tokenizers import TEXTS, random_texts  # noqa: E402


class Shape(ctypes.Structure):
    _fields_ = [("rank", ctypes.c_int), ("dims", ctypes.c_int64 * 8)]


class Array(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_int), ("shape", Shape), ("data", ctypes.c_void_p), ("borrowed", ctypes.c_bool)]


class Cleave:
    def __init__(self, path):
        os.environ["OCL_ICD_VENDORS"] = os.devnull  # no drivers are needed
        self.library, self.runtime = ctypes.CDLL(path), ctypes.c_void_p()
        self.library.clv_runtime_error.restype = ctypes.c_char_p
        self.library.clv_vocabulary_destroy.restype = None
        self.library.clv_array_reset.restype = None
        assert self.library.clv_runtime_create(None, ctypes.byref(self.runtime)) == 0

    def done(self, status):
        if status:
            raise ValueError(self.library.clv_runtime_error(self.runtime).decode())

    def tokenizer(self, json):
        vocabulary = ctypes.c_void_p()
        self.done(self.library.clv_vocabulary_create(self.runtime, 2, json, ctypes.c_size_t(len(json)), ctypes.byref(vocabulary)))
        return vocabulary

    def encode(self, vocabulary, text):
        data, out = text.encode(), Array()
        self.done(self.library.clv_vocabulary_encode(vocabulary, data, ctypes.c_size_t(len(data)), ctypes.byref(out)))
        ids = list((ctypes.c_int32 * out.shape.dims[0]).from_address(out.data)) if out.shape.dims[0] else []
        self.library.clv_array_reset(ctypes.byref(out))
        return ids

    def decode(self, vocabulary, ids, skip):
        out = Array()
        self.done(self.library.clv_vocabulary_decode(vocabulary, (ctypes.c_int32 * len(ids))(*ids), ctypes.c_size_t(len(ids)), ctypes.c_bool(skip), ctypes.byref(out)))
        text = ctypes.string_at(out.data, out.shape.dims[0]).decode()
        self.library.clv_array_reset(ctypes.byref(out))
        return text


def compare(cleave, path, texts, rng):
    theirs, ours = Tokenizer.from_file(path), None
    with open(path, "rb") as file:
        ours = cleave.tokenizer(file.read())
    count, wrong, first = theirs.get_vocab_size(), {"tokens": 0, "decoded": 0, "random tokens decoded": 0}, {}
    known = sorted(theirs.get_vocab().values())
    for encoding, text in zip(theirs.encode_batch(texts, add_special_tokens=False), texts):
        got = cleave.encode(ours, text)
        some = [rng.choice(known) for _ in range(rng.randrange(0, 20))]
        checks = [("tokens", encoding.ids, got), ("decoded", theirs.decode(encoding.ids, skip_special_tokens=False), cleave.decode(ours, encoding.ids, False)),
                  ("random tokens decoded", theirs.decode(some), cleave.decode(ours, some, True))]
        for what, want, found in checks:
            if want != found:
                wrong[what] += 1
                first.setdefault(what, (text if what != "random tokens decoded" else some, want, found))
    cleave.library.clv_vocabulary_destroy(ours)
    print(f"{os.path.basename(path):20} {count:6} tokens  {len(texts)} texts  wrong: {wrong}", flush=True)
    for what, (text, want, found) in first.items():
        print(f"    {what} of {text!r}\n        want  {want!r}\n        found {found!r}")
    return sum(wrong.values())


def main():
    cleave, folder = Cleave(os.path.abspath(sys.argv[1])), sys.argv[2]
    number, seed = int(sys.argv[3]) if len(sys.argv) > 3 else 100000, int(sys.argv[4]) if len(sys.argv) > 4 else 1
    texts = TEXTS + random_texts(seed, number - len(TEXTS))
    paths = sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".json") and ".cases" not in name)
    failed = sum(compare(cleave, path, texts, random.Random(seed)) for path in paths)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
