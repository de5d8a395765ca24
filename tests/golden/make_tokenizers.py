#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small tokenizers in the forms of those that people use, and what Hugging Face's tokenizers (PyPI: tokenizers) make of texts:
tokenizers/NAME.json and tokenizers/NAME.cases.json, a list of [text, tokens, decoded, decoded without special tokens]. Read by
tests/data/tokenizer.c. T5's table of replacements is SentencePiece's (PyPI: sentencepiece, protobuf), of some rules only.

    make_tokenizers.py [FOLDER]    FOLDER: instead of tokenizers/; then T5's table has all of SentencePiece's rules"""
import json
import os
import random
import sys
import tempfile

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "tokenizers")
CORPUS = ["the quick brown fox doesn't jump over the lazy dogs they've seen", "a tensor has 3 dimensions, 1024 x 768, and it's 32 bits wide",
          "int main(void) {\n    return 0;\n}\n", "Zürich liegt am Zürichsee; größer wär schöner", "日本語の文章です。中文也有一些。",
          "    four spaces,\ttabs, and\r\n\r\nempty lines   ", "we'll see: I'm here, you're there, he'd know", "Привет, мир! שלום עולם مرحبا हिन्दी ไทย 한국어"] * 4
WORDS = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
WORDS_OF_QWEN = WORDS.replace(r"\p{N}{1,3}", r"\p{N}")
WORDS_OF_DEEPSEEK = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
TEXTS = ["", " ", "  ", "\n", "a", "the", " the", "  the", "the quick brown fox", "doesn't DOESN'T doesn’t", "we'll we'LL 'll '", "1234567 12 ٣٤ Ⅷ ²",
         "Zürich größer", "größer als alles", "e\u0301 é ñ", "日本語の文章 中文", "😀😀 👩‍👩‍👧 🇨🇭", "a\u00a0b\u2003c\u3000d\u200be\ufefff", "tab\tand\r\n\r\n  end  ", "   \n  x", "x   \n",
         "ǅ Ǆ ʰ ـ ª", "x<|endoftext|>y", "<|end|><|end", "<|endoftext|> <|endoftext|>", "a\x00b\x01\x7f\x85", "int main(void) {\n    return 0;\n}",
         "a" * 300, "ab" * 150, "!?...!!", "snake_case camelCase", "\U0010fffd\ue000\ufffd", "עברית العربية हिन्दी ไทย", "ﬁ ½ ① Å ㍿ ﷺ", "İstanbul ΑΣ ẞ",
         "a\u1885b\u180ec", "\U00031350 \U0001e4d0 \U00011f02 \U0001fae8", "<s>x</s> <s> </s>", "[MASK] [CLS]x [SEP]", "x <mask> y  <mask>", "<extra_id_0> x<extra_id_0>",
         "<0x41><unk> unk", "do not n't 's .", "▁ ▁▁x", "\u0301x", "\u0903"]
ADDED = ["<|endoftext|>", "<|end|>", "<s>", "</s>", "<mask>", "[MASK]", "<unk>", "[UNK]", "<extra_id_0>", "größer als", "single", "<|x|>", "<|x|>y", "<0x41>", "<É>"]


def random_texts(seed, n):
    rng = random.Random(seed)
    pieces = list("abcdetnsxyz  \n\t.,'!0123456789") + ["the", "qu", "ick", "'s", "'LL", "é", "ü", "日", "😀", "\u00a0", "\u0301", "\r\n", "   ", "ﬁ", "Ⅷ", "İ", "Ä", "▁", "한", "द", "ि",
                                                     "\u200d", "。", "$", "_", "`", "É"] + ADDED
    texts = []
    for _ in range(n):
        if rng.random() < 0.15:  # any characters
            codes = (rng.choice([rng.randrange(1, 0x250), rng.randrange(0x250, 0x3000), rng.randrange(0x3000, 0xD800), rng.randrange(0xE000, 0x20000),
                                 rng.randrange(0x20000, 0x110000)]) for _ in range(rng.randrange(1, 12)))
            texts.append("".join(map(chr, codes)))
        else:
            texts.append("".join(rng.choice(pieces) for _ in range(rng.randrange(1, 40))))
    return texts


def trained(tokenizer, trainer):
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def byte_level(pre, size, normalizer=None, alphabet=True, **settings):
    tokenizer = Tokenizer(models.BPE(**settings))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre, decoders.ByteLevel()
    if normalizer:
        tokenizer.normalizer = normalizer
    return trained(tokenizer, trainers.BpeTrainer(vocab_size=size, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet() if alphabet else []))


def split_by(*expressions):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(e), "isolated") for e in expressions] + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def gpt2():
    tokenizer = byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False), 460)
    tokenizer.add_special_tokens(["<|endoftext|>", "<|end|>"])
    tokenizer.add_tokens(["größer als"])
    return tokenizer


def roberta():
    tokenizer = byte_level(pre_tokenizers.ByteLevel(add_prefix_space=True), 440)
    tokenizer.add_special_tokens(["<s>", "</s>", AddedToken("<mask>", lstrip=True)])
    return tokenizer


def llama3():
    tokenizer = byte_level(split_by(WORDS), 480, ignore_merges=True)
    tokenizer.add_special_tokens(["<|endoftext|>", "<|end|>"])
    tokenizer.add_tokens(["größer als"])
    return tokenizer


def qwen():
    tokenizer = byte_level(split_by(WORDS_OF_QWEN), 470, normalizers.NFC())
    tokenizer.add_special_tokens(["<|endoftext|>", "<|x|>", "<|x|>y"])
    return tokenizer


def deepseek():
    tokenizer = byte_level(split_by(r"\p{N}{1,3}", "[一-龥\u3040-ゟ゠-ヿ]+", WORDS_OF_DEEPSEEK), 470, normalizers.Sequence([]))
    tokenizer.add_special_tokens(["<|endoftext|>"])
    tokenizer.add_tokens([AddedToken("<|end|>", normalized=False), AddedToken("single", single_word=True, normalized=True)])
    return tokenizer


def lacking():
    """A vocabulary without the bytes that no text has, Digits, and a decoder that is none."""
    return byte_level(pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]), 300, alphabet=False)


def bytes_of(vocab):
    return {f"<0x{i:02X}>": 3 + i for i in range(256)} | {t: 259 + i for i, t in enumerate(vocab)}


def sentencepiece_bpe(added, first):
    """BPE as SentencePiece has it, its bytes for what is unknown: Llama 2 and Phi-3."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    trained(tokenizer, trainers.BpeTrainer(vocab_size=330, show_progress=False, limit_alphabet=60, max_token_length=12))
    said = json.loads(tokenizer.to_str())
    vocab = sorted(said["model"]["vocab"], key=said["model"]["vocab"].get)
    said["model"]["vocab"] = {"<unk>": 0, "<s>": 1, "</s>": 2} | bytes_of(vocab)
    tokenizer = Tokenizer.from_str(json.dumps(said))
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    if first:
        tokenizer.normalizer = None
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    tokenizer.add_special_tokens(["<unk>", "<s>"])
    tokenizer.add_tokens(added)
    return tokenizer


def llama2():
    return sentencepiece_bpe([AddedToken("</s>", special=True, normalized=False)], False)


def phi3():
    return sentencepiece_bpe([AddedToken("</s>", rstrip=True, normalized=False), AddedToken("<|end|>", rstrip=True, special=True, normalized=False),
                              AddedToken("<|endoftext|>", special=True)], False)


def mistral():
    return sentencepiece_bpe([AddedToken("[MASK]", lstrip=True, rstrip=True)], True)


def bert():
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
    return trained(tokenizer, trainers.WordPieceTrainer(vocab_size=300, show_progress=False, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))


def charsmap(full):
    with tempfile.TemporaryDirectory() as folder:
        with open(folder + "/corpus", "w", encoding="utf-8") as file:
            file.write("\n".join(CORPUS))
        rules = {"normalization_rule_name": "nmt_nfkc"}
        if not full:
            rows = {"ﬁ": "fi", "½": "1⁄2", "①": "1", "Ⅷ": "VIII", "e\u0301": "\u00e9", "か\u3099": "\u304c", "\u3000": " ", "\t": " ", "\n": " ", "\r": " ", "\u200b": "",
                    "\x01": "", "ﷺ": "صلى الله عليه وسلم"}
            with open(folder + "/rules.tsv", "w", encoding="utf-8") as file:
                for source, target in rows.items():
                    file.write(" ".join(f"{ord(c):x}" for c in source) + "\t" + " ".join(f"{ord(c):x}" for c in target) + "\n")
            rules = {"normalization_rule_tsv": folder + "/rules.tsv"}
        sentencepiece.SentencePieceTrainer.train(input=folder + "/corpus", model_prefix=folder + "/m", vocab_size=150, hard_vocab_limit=False, minloglevel=2, **rules)
        model = open(folder + "/m.model", "rb").read()
    from sentencepiece import sentencepiece_model_pb2
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(model)
    return proto.normalizer_spec.precompiled_charsmap


def t5():
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.Precompiled(charsmap(len(sys.argv) > 1)), normalizers.Strip(left=False, right=True),
                                                 normalizers.Replace(Regex(" {2,}"), "▁")])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")])
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    trained(tokenizer, trainers.UnigramTrainer(vocab_size=260, show_progress=False, unk_token="<unk>", special_tokens=["<pad>", "</s>", "<unk>"]))
    tokenizer.add_special_tokens([AddedToken("<extra_id_0>", lstrip=True, rstrip=True)])
    return tokenizer


def unigram():
    """Unigram whose unknown characters are bytes, in normal form KC and small letters, as multilingual ones have it."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trained(tokenizer, trainers.UnigramTrainer(vocab_size=240, show_progress=False, unk_token="<unk>", special_tokens=["<unk>"]))
    said = json.loads(tokenizer.to_str())
    said["model"]["byte_fallback"] = True
    said["model"]["vocab"] += [[f"<0x{i:02X}>", -12.0] for i in range(256)]
    tokenizer = Tokenizer.from_str(json.dumps(said))
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    return tokenizer


def suffixes():
    """BPE with a suffix at the end of words, as of CLIP and GPT; marks taken away, in normal form D."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits(), pre_tokenizers.Punctuation("contiguous")])
    tokenizer.decoder = decoders.BPEDecoder(suffix="</w>")
    trained(tokenizer, trainers.BpeTrainer(vocab_size=240, show_progress=False, special_tokens=["<unk>"], end_of_word_suffix="</w>"))
    tokenizer.add_tokens([AddedToken("<|x|>", lstrip=True), AddedToken("single", single_word=True), "größer als", AddedToken("<É>", special=True, normalized=True)])
    return tokenizer


def prefixes():
    """BPE with a prefix within words; each behaviour of Split."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", continuing_subword_prefix="##"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.Strip()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(" ", "removed"), pre_tokenizers.Split(Regex(r"[.,]+"), "merged_with_previous"), pre_tokenizers.Split("'", "merged_with_next"),
         pre_tokenizers.Split(Regex(r"\w+"), "contiguous", invert=True), pre_tokenizers.Split(Regex(r"\d"), "isolated"), pre_tokenizers.CharDelimiterSplit("_")])
    return trained(tokenizer, trainers.BpeTrainer(vocab_size=220, show_progress=False, special_tokens=["<unk>"], continuing_subword_prefix="##"))


def words():
    """Words as they stand."""
    tokenizer = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Replace(Regex(r"\s+"), " "), normalizers.Replace("ß", "ss")])
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return trained(tokenizer, trainers.WordLevelTrainer(vocab_size=80, show_progress=False, special_tokens=["[UNK]"]))


def as_pairs(said):
    said["model"]["merges"] = said["model"]["merges"][:-40]  # words that are tokens, and which merges no longer reach


def as_texts(said):  # the older form
    said["model"]["merges"] = [m if isinstance(m, str) else " ".join(m) for m in said["model"]["merges"]]


def older(said):
    said["pre_tokenizer"] = {"type": "Metaspace", "replacement": "▁", "add_prefix_space": True}


KINDS = {"words": (gpt2, as_texts), "split": (llama3, as_pairs), "roberta": (roberta, None), "qwen": (qwen, None), "deepseek": (deepseek, None), "lacking": (lacking, None),
         "llama2": (llama2, None), "phi3": (phi3, None), "mistral": (mistral, None), "bert": (bert, None), "t5": (t5, None), "unigram": (unigram, older),
         "suffixes": (suffixes, None), "prefixes": (prefixes, None), "wordlevel": (words, None)}


def make(name, make_one, changes):
    said = json.loads(make_one().to_str())
    if changes:
        changes(said)
    path = os.path.join(FOLDER, name)
    with open(path + ".json", "w", encoding="utf-8") as file:
        json.dump(said, file, ensure_ascii=False, separators=(",", ":"))
    again = Tokenizer.from_file(path + ".json")
    cases = []
    for text in TEXTS + random_texts(len(name), 120):
        ids = again.encode(text, add_special_tokens=False).ids
        cases.append([text, ids, again.decode(ids, skip_special_tokens=False), again.decode(ids)])
    with open(path + ".cases.json", "w", encoding="utf-8") as file:
        file.write("[\n" + ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases) + "\n]\n")


if __name__ == "__main__":
    os.makedirs(FOLDER, exist_ok=True)
    for kind, (how, change) in KINDS.items():
        make(kind, how, change)
