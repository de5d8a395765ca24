#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tokenizers of byte-pair encoding, small, and what Hugging Face's tokenizers (PyPI: tokenizers) make of texts: tokenizers/NAME.json
and tokenizers/NAME.cases.json, a list of [text, tokens]. Read by tests/data/tokenizer.c."""
import json
import os
import random

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tokenizers")
CORPUS = ["the quick brown fox doesn't jump over the lazy dogs they've seen", "a tensor has 3 dimensions, 1024 x 768, and it's 32 bits wide",
          "int main(void) {\n    return 0;\n}\n", "Zürich liegt am Zürichsee; größer wär schöner", "日本語の文章です。中文也有一些。",
          "    four spaces,\ttabs, and\r\n\r\nempty lines   ", "we'll see: I'm here, you're there, he'd know"] * 4
WORDS = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
ADDED = ["<|endoftext|>", "<|end|>", "größer als"]
TEXTS = ["", " ", "  ", "\n", "a", "the", " the", "  the", "the quick brown fox", "doesn't DOESN'T doesn’t", "we'll we'LL 'll '", "1234567 12 ٣٤ Ⅷ ²",
         "Zürich größer", "größer als alles", "e\u0301 é ñ", "日本語の文章 中文", "😀😀 👩‍👩‍👧 🇨🇭", "a\u00a0b\u2003c\u3000d\u200be\ufefff", "tab\tand\r\n\r\n  end  ", "   \n  x", "x   \n",
         "ǅ Ǆ ʰ ـ ª", "x<|endoftext|>y", "<|end|><|end", "<|endoftext|> <|endoftext|>", "a\x00b\x01\x7f\x85", "int main(void) {\n    return 0;\n}",
         "a" * 700, "ab" * 300, "!?...!!", "snake_case camelCase", "\U0010fffd\ue000\ufffd", "עברית العربية हिन्दी ไทย"]


def random_texts(seed, n):
    rng = random.Random(seed)
    pieces = list("abcdetnsxyz  \n\t.,'!0123456789") + ["the", "qu", "ick", "'s", "'LL", "é", "ü", "日", "😀", "\u00a0", "\u0301", "<|end|>", "\r\n", "   "]
    return ["".join(rng.choice(pieces) for _ in range(rng.randrange(1, 40))) for _ in range(n)]


def make(name, pre, size, changes):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer, tokenizer.decoder = pre, decoders.ByteLevel()
    tokenizer.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=size, show_progress=False,
                                                              initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.add_special_tokens(ADDED[:2])
    tokenizer.add_tokens(ADDED[2:])
    said = json.loads(tokenizer.to_str())
    changes(said)
    path = os.path.join(FOLDER, name)
    with open(path + ".json", "w", encoding="utf-8") as file:
        json.dump(said, file, ensure_ascii=False, separators=(",", ":"))
    again = Tokenizer.from_file(path + ".json")
    cases = [[text, again.encode(text, add_special_tokens=False).ids] for text in TEXTS + random_texts(len(name), 200)]
    with open(path + ".cases.json", "w", encoding="utf-8") as file:
        file.write("[\n" + ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases) + "\n]\n")


def as_pairs(said):
    said["model"]["ignore_merges"] = True
    said["model"]["merges"] = said["model"]["merges"][:-40]  # words that are tokens, and which merges no longer reach


def as_texts(said):  # the older form
    said["model"]["merges"] = [m if isinstance(m, str) else " ".join(m) for m in said["model"]["merges"]]


os.makedirs(FOLDER, exist_ok=True)
make("words", pre_tokenizers.ByteLevel(add_prefix_space=False), 460, as_texts)
make("split", pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(WORDS), "isolated"),
                                       pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]), 480, as_pairs)
