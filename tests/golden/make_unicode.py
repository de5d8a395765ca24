#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What Hugging Face's tokenizers (PyPI: tokenizers) take each character for, asked of them one by one, where that follows from other versions of
Unicode than utf8proc's and PCRE2's: writes runtime/data/tokenizer/unicode.def. Also needs unicodedata2 (PyPI), for the categories of new characters.

    make_unicode.py >../../runtime/data/tokenizer/unicode.def"""
import tokenizers
import unicodedata2
from tokenizers import Regex, normalizers, pre_tokenizers

CODES = [code for code in range(1, 0x110000) if not 0xD800 <= code < 0xE000]
PCRE2 = 14  # the oldest Unicode of a PCRE2 that must do: newer characters have stand-ins


def parted(pre, before, code):
    return len(pre.pre_tokenize_str(before + chr(code) + before)) > 1


def runs(codes):
    out = []
    for code in codes:
        if out and out[-1][1] == code - 1:
            out[-1][1] = code
        else:
            out.append([code, code])
    return out


def show(name, what, codes):
    print(f"// {what}")
    row = ""
    for first, last in runs(codes):
        one = f"{name}({first:#x}, {last:#x})"
        if len(row) + len(one) > 108:
            print(row)
            row = ""
        row += (" " if row else "") + one
    print(row)


def unknown():
    """Characters whose decomposition or combining class is newer than the normalizer's tables, and what would be composed to them."""
    forms = [normalizers.NFD(), normalizers.NFKD()]
    nfd, found = forms[0], set()
    for code in CODES:
        c = chr(code)
        if unicodedata2.combining(c) and nfd.normalize_str("A\u0345" + c) == "A\u0345" + c and nfd.normalize_str("A" + c + "\u0334") == "A" + c + "\u0334" \
                and unicodedata2.combining(c) != 240:
            found.add(code)
        for form, name in zip(forms, ("NFD", "NFKD")):
            if unicodedata2.normalize(name, c) != c and form.normalize_str(c) == c:
                found.add(code)
                parts = unicodedata2.decomposition(c).split()
                if not parts[0].startswith("<") and len(parts) == 2:
                    found.add(int(parts[1], 16))
    return sorted(found)


import unicodedata
assert unicodedata.unidata_version.startswith(f"{PCRE2}."), "a Python whose Unicode is that of the oldest PCRE2"
print("// SPDX-License-Identifier: Apache-2.0")
print(f"// Made by make_unicode.py from tokenizers {tokenizers.__version__}: what characters count as there. UNKNOWN, MARK, NONSPACING, REMOVED,")
print("// PUNCTUATION, NUMERIC, WORD (first, last); LOWER (first, last, distance); NEWER (first, last, stand-in).")
show("UNKNOWN", "neither composed, decomposed nor reordered: newer than the normalizer's tables", unknown())
strip = normalizers.StripAccents()
show("MARK", "taken away by StripAccents", [c for c in CODES if strip.normalize_str(chr(c)) == ""])
bert = normalizers.BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False)
show("NONSPACING", "taken away by BertNormalizer with strip_accents", [c for c in CODES if bert.normalize_str(chr(c)) == ""])
clean = normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=False)
show("REMOVED", "taken away by BertNormalizer with clean_text", [c for c in CODES if clean.normalize_str(chr(c)) == ""])
show("PUNCTUATION", "of Punctuation and BertPreTokenizer", [c for c in CODES if parted(pre_tokenizers.Punctuation(), "a", c)])
show("NUMERIC", "of Digits", [c for c in CODES if parted(pre_tokenizers.Digits(), "a", c)])
show("WORD", "of Whitespace", [c for c in CODES if not parted(pre_tokenizers.Whitespace(), "a", c)])
print("// capitals that utf8proc may not know")
lower, rows = normalizers.Lowercase(), []
for code in CODES:
    small = lower.normalize_str(chr(code))
    if unicodedata.category(chr(code)) == "Cn" and small != chr(code):
        if rows and rows[-1][1] == code - 1 and rows[-1][2] == ord(small) - code:
            rows[-1][1] = code
        else:
            rows.append([code, code, ord(small) - code])
    elif len(small) == 1 and small != chr(code).lower()[:1] and code != 0x130:
        rows.append([code, code, ord(small) - code])
for first, last, distance in rows:
    print(f"LOWER({first:#x}, {last:#x}, {distance})")
print("// newer than PCRE2's Unicode may be: an older character of the same category, script and length, which expressions see in its place")
STANDS = {3: {"Lu": 0x1C90, "Ll": 0x1C80, "Lt": 0x1F88, "Lm": 0x1C78, "Lo": 0x1C4D, "Mn": 0x1CD0, "Mc": 0x1CE1, "Me": 0x20DD, "Nd": 0x1C50, "Nl": 0x2160, "No": 0x2460,
              "Po": 0x1C7E, "Pd": 0x2E3A, "Ps": 0x2E28, "Pe": 0x2E29, "Pc": 0x203F, "Pi": 0x2E20, "Pf": 0x2E21, "Sm": 0x2200, "Sc": 0x20A0, "Sk": 0x1FBD, "So": 0x2300,
              "Cf": 0x200B, "Cn": 0x2FE0},
          4: {"Lu": 0x10400, "Ll": 0x10428, "Lm": 0x16B40, "Lo": 0x10300, "Mn": 0x101FD, "Mc": 0x1D165, "Nd": 0x104A0, "Nl": 0x10140, "No": 0x10107, "Po": 0x10100,
              "Pd": 0x10EAD, "Sm": 0x1D6C1, "Sc": 0x1ECB0, "Sk": 0x1F3FB, "So": 0x1F300, "Cf": 0x110BD, "Cn": 0x1FFFE},
          2: {"Lu": 0x410, "Ll": 0x430, "Lo": 0x5D0, "Mn": 0x300, "Po": 0x55A, "Lm": 0x2B0, "Cf": 0x600, "Sk": 0x2C2, "So": 0xA6}}
seen = {name: pre_tokenizers.Split(Regex(r"\p{%s}" % name), "isolated") for name in {n for row in STANDS.values() for n in row}}
rows = []
for code in CODES:
    if code == 0x180E:  # no blank any more
        rows.append([code, code, 0x200B])
    if unicodedata.category(chr(code)) != "Cn" or unicodedata2.category(chr(code)) == "Cn":
        continue
    name = unicodedata2.category(chr(code))
    if not parted(seen[name], "1" if name[0] == "L" else "a", code):
        continue  # newer than theirs, too
    stands = STANDS[len(chr(code).encode())][name]
    if name == "Lo" and unicodedata2.name(chr(code), "").startswith("CJK UNIFIED"):
        stands = 0x20000 if code > 0xFFFF else 0x4E00
    if rows and rows[-1][1] == code - 1 and rows[-1][2] == stands:
        rows[-1][1] = code
    else:
        rows.append([code, code, stands])
for first, last, stands in rows:
    print(f"NEWER({first:#x}, {last:#x}, {stands:#x})")
