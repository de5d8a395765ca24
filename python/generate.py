#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The C interface for Python, made from the public headers: `cleave/_c.py`, a module of cffi in ABI mode. It holds no compiled code, so one
file serves every Python and every machine. Wants cffi.

    generate.py OUT_FOLDER          writes _c.py there
"""
import json
import os
import re
import subprocess
import sys

import cffi

HERE = os.path.dirname(os.path.abspath(__file__))


def table():
    """tools/declarations.py reads the headers."""
    command = [sys.executable, os.path.join(HERE, "..", "tools", "declarations.py")]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def declare(what):
    """A parameter or member in C: of the type `T (*)(A)`, `T[8]` or `T *`."""
    type_, name = what["type"], what["name"]
    if "(*)" in type_:
        return type_.replace("(*)", "(*%s)" % name, 1)
    base, lengths = re.match(r"(.*?)\s*((?:\[\d+\])*)$", type_).groups()
    return "%s %s%s%s" % (base, name, lengths, "".join("[%d]" % n for n in what.get("lengths", ())))


def bare(type_):
    return re.sub(r"\bconst\b|\[\d+\]", "", type_).strip()


def cdef(t):
    of_enums = {name for enum in t["enums"].values() for name in enum["values"]}
    lines = ["#define %s %d" % (n, v) for n, v in t["constants"].items() if isinstance(v, int) and n not in of_enums]
    for name, enum in t["enums"].items():
        values = ", ".join("%s = %d" % v for v in enum["values"].items())
        lines.append("typedef enum { %s } %s;" % (values, name))
    lines += ["typedef struct %s %s;" % (n, n) for n in list(t["handles"]) + list(t["structs"])]
    for name, what in t["callbacks"].items():
        what = what["callback"]
        lines.append("typedef %s (*%s)(%s);" % (what["result"], name, ", ".join(p["type"] for p in what["parameters"])))
    done = set()

    def struct(name):  # those that it holds by value come first
        if name in done:
            return
        done.add(name)
        members = t["structs"][name]["members"]
        for m in members:
            if bare(m["type"]) in t["structs"]:
                struct(bare(m["type"]))
        text = "".join("    %s;\n" % declare(m) for m in members)
        lines.append("struct %s {\n%s};" % (name, text))

    for name in t["structs"]:
        struct(name)
    for name, f in t["functions"].items():
        parameters = ", ".join(declare(p) for p in f["parameters"])
        lines.append("%s %s(%s);" % (f["result"]["type"], name, parameters or "void"))
    return "\n".join(lines)


def main():
    folder = sys.argv[1]
    ffi = cffi.FFI()
    ffi.set_source("cleave._c", None)
    ffi.cdef(cdef(table()))
    ffi.emit_python_code(os.path.join(folder, "_c.py"))


if __name__ == "__main__":
    main()
