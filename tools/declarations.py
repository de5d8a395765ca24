#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The public headers as a table: what a generator of bindings needs to know of every function, struct, enum and constant.

    declarations.py [INCLUDE_FOLDER]                      the table, as JSON
    declarations.py --library LIB [--most N]              is it of the functions that the library exports, and no others, at most N?
    declarations.py --sources FOLDER                      do the functions check the pointers that the headers say must not be NULL?
    declarations.py --nulls FILE                          write a C program that calls each of them with a NULL (tests/misuse)

What the table knows of a pointer comes from its type and from the marks that include/cleave/status.h explains. A pointer that neither
tells is an error, with header and line. This reads the C that our headers are written in, not all of C.

Of a parameter or member: `type` as in C; `out` (null, "out", "inout"); `null`: may be NULL; `array` (null, "count", "comment",
"until_null") and `count`, a constant, a name or a path; `owned`: the function with which the caller ends what he gets; `kept`, `taken`;
`callback`: what is called, whose own pointers are lent for the call; `user`: the callback that it is handed to; `mistake`: NULL is let
through by a call that builds. A struct `grows` if it ends with CLV_RESERVED; a handle or struct `ends_with` a function, or belongs to
what it came from.
"""
import argparse
import glob
import json
import os
import re
import subprocess
import sys

MARKS = {"CLV_OUT", "CLV_INOUT", "CLV_OR_NULL", "CLV_COUNT", "CLV_ARRAY", "CLV_UNTIL_NULL", "CLV_KEPT", "CLV_TAKEN",
         "CLV_BORROWED"}
NUMBERS = {"bool", "char", "int", "unsigned", "float", "double", "size_t", "int32_t", "int64_t", "uint8_t", "uint32_t", "uint64_t"}
STANDARD = NUMBERS | {"void", "va_list"}
LENGTH = re.compile(r"^(n|n_\w+|bytes|size|room|count)$")  # names of parameters that are the length of what stands before them


class Mistake(Exception):
    pass


# ---- text -----------------------------------------------------------------------------------------------------------

def without_comments(text):
    keep = lambda m: m.group(0) if m.group(0)[0] == '"' else re.sub(r"[^\n]", " ", m.group(0))
    return re.sub(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', keep, text, flags=re.S)


def preprocess(path, table):
    """The lines that a C compiler sees, and which of them are experimental; constants go to the table."""
    lines, experimental, stack = [], set(), []
    text = without_comments(open(path, encoding="utf-8").read())
    text = re.sub(r"\\\n", lambda m: "\x00", text)  # a continued line is one line, and counts as many
    number = 0
    for line in text.split("\n"):
        number += 1
        more, line = line.count("\x00"), line.replace("\x00", " ")
        directive = re.match(r"\s*#\s*(\w+)\s*(.*)", line)
        seen = all(s["now"] for s in stack)
        if directive:
            word, rest = directive.group(1), directive.group(2).strip()
            if word in ("if", "ifdef", "ifndef"):
                stack.append({"now": not (word == "ifdef" and rest == "__cplusplus"), "rest": rest})
            elif word in ("else", "elif"):
                top = stack[-1]
                top["now"] = word == "else" and top["rest"] == "__cplusplus" and not top["now"]
            elif word == "endif":
                stack.pop()
            elif word == "define" and seen:
                constant = re.match(r'(\w+) +("[^"]*"|\(?-?\d+\)?)$', rest)
                if constant and constant.group(1) not in MARKS:
                    value = constant.group(2)
                    table["constants"][constant.group(1)] = value[1:-1] if value[0] == '"' else int(value.strip("()"))
            elif word == "include" and seen and rest.endswith('.def"'):
                line = data(os.path.join(os.path.dirname(path), rest.strip('"')))
                lines.append(line)
                continue
            line = ""
        lines.append(line if seen else "")
        lines += [""] * more
        number += more
        if any(s["rest"] == "CLEAVE_STABLE_ONLY" for s in stack):
            experimental.update(range(number - more, number + 1))
    return "\n".join(lines), experimental


def data(path):
    """A list of X(name, number, "text") as the constants of an enum."""
    rows = re.findall(r'^X\((\w+),\s*(-?\d+)', without_comments(open(path, encoding="utf-8").read()), flags=re.M)
    return " ".join("CLV_%s = %s," % row for row in rows)


# ---- declarations ---------------------------------------------------------------------------------------------------

class Reader:
    """The declarations of one header, into the table."""

    def __init__(self, path, table):
        self.header, self.table = os.path.basename(path), table
        text, self.experimental = preprocess(path, table)
        self.tokens = [(m.group(0), text.count("\n", 0, m.start()) + 1)
                       for m in re.finditer(r'\w+|"[^"]*"|->|\.\.\.|[^\s\w]', text)]
        self.at = 0

    def line(self):
        return self.tokens[min(self.at, len(self.tokens) - 1)][1]

    def mistake(self, text, line=None):
        raise Mistake("%s:%d: %s" % (self.header, line or self.line(), text))

    def peek(self, ahead=0):
        return self.tokens[self.at + ahead][0] if self.at + ahead < len(self.tokens) else ""

    def take(self, wanted=None):
        token = self.peek()
        if wanted is not None and token != wanted:
            self.mistake("'%s' where '%s' was expected" % (token, wanted))
        self.at += 1
        return token

    def try_take(self, wanted):
        if self.peek() != wanted:
            return False
        self.at += 1
        return True

    def balanced(self, begin, end):
        """What stands between two brackets, as text."""
        self.take(begin)
        text, depth = [], 1
        while depth:
            token = self.take()
            if not token:
                self.mistake("'%s' without '%s'" % (begin, end))
            depth += (token == begin) - (token == end)
            text.append(token)
        return "".join(text[:-1])

    def number(self, text):
        known = self.table["constants"]
        names = re.sub(r"[A-Za-z_]\w*", lambda m: str(known[m.group(0)]) if m.group(0) in known
                       else self.mistake("nobody knows the constant %s" % m.group(0)), text)
        if not re.match(r"^[-+*/() 0-9<]+$", names):
            self.mistake("'%s' is no constant" % text)
        return int(eval(names))

    def marks(self):
        found = {}
        while self.peek() in MARKS:
            line, mark = self.line(), self.take()
            found[mark] = self.balanced("(", ")") if mark == "CLV_COUNT" else line
        return found

    def base(self):
        """`const struct x`, without its pointers."""
        words, const = [], False
        while True:
            token = self.peek()
            if token in ("const", "volatile"):
                const = const or token == "const"
            elif token in ("struct", "enum"):
                pass
            elif not words or (words[-1] in ("unsigned", "long") and token in ("int", "long", "char")):
                words.append(token)
            else:
                break
            self.at += 1
        return {"name": " ".join(words), "const": const, "pointers": []}

    def pointers(self, base):
        """Its pointers; of each: is it const?"""
        kind = dict(base, pointers=[])
        while self.try_take("*"):
            kind["pointers"].append(self.try_take("const"))
        return kind

    def declarator(self, base):
        """A name with its type: (name, type, callback)."""
        kind, callback, line = self.pointers(base), None, self.line()
        if self.peek() == "(" and self.peek(1) == "*":
            self.take("("), self.take("*")
            name = self.take()
            self.take(")")
            callback = {"result": spelled(kind), "parameters": [
                {"name": p["name"], "type": p["type"]} for p in self.parameters()]}
        else:
            name = self.take() if re.match(r"[A-Za-z_]", self.peek()) else ""
        lengths = []
        while self.peek() == "[":
            text = self.balanced("[", "]")
            lengths.append(self.number(text))
        return {"name": name, "kind": kind, "callback": callback, "lengths": lengths, "line": line}

    def parameters(self):
        """What stands between the brackets of a function."""
        found = []
        self.take("(")
        if self.peek() == "void" and self.peek(1) == ")":
            self.take()
        while not self.try_take(")"):
            marks = self.marks()
            one = self.declarator(self.base())
            one["marks"] = marks
            one["type"] = spelled(one["kind"], one["callback"], one["lengths"])
            found.append(one)
            if self.peek() != ")":
                self.take(",")
        return found

    def members(self):
        found = []
        self.take("{")
        while not self.try_take("}"):
            if self.try_take("CLV_RESERVED"):
                length = self.number(self.balanced("(", ")"))
                found.append({"name": "reserved", "kind": {"name": "uint64_t", "const": False, "pointers": []},
                              "callback": None, "lengths": [length], "line": self.line(), "marks": {}})
                self.take(";")
                continue
            marks = self.marks()
            base = self.base()
            while True:
                one = self.declarator(base)
                one["marks"] = marks
                found.append(one)
                if not self.try_take(","):
                    break
            self.take(";")
        for one in found:
            one["type"] = spelled(one["kind"], one["callback"], [])
        return found

    def enum(self, name, line):
        values, last = {}, -1
        self.take("{")
        while not self.try_take("}"):
            constant = self.take()
            text = ""
            if self.try_take("="):
                while self.peek() not in (",", "}"):
                    text += self.take()
            last = self.number(text) if text else last + 1
            values[constant] = self.table["constants"][constant] = last
            self.try_take(",")
        if name:
            self.add("enums", name, {"values": values}, line)

    def add(self, where, name, what, line):
        if name in self.table[where]:
            self.mistake("%s is declared twice" % name, line)
        self.table[where][name] = dict({"header": self.header, "line": line, "experimental": line in self.experimental}, **what)

    def typedef(self):
        line = self.line()
        if self.peek() in ("struct", "enum"):
            kind, tag = self.take(), self.take()
            if self.peek() == "{":
                if kind == "struct":
                    self.add("structs", tag, {"members": self.members()}, line)
                else:
                    self.enum(tag, line)
            else:
                self.table["names"].setdefault(tag, {"header": self.header, "line": line,
                                                     "experimental": line in self.experimental})
            self.take(tag)  # a struct and its typedef have the same name
        else:
            one = self.declarator(self.base())
            if not one["callback"]:
                self.mistake("typedef of '%s': neither a struct, an enum nor a function" % one["name"], line)
            self.add("callbacks", one["name"], {"callback": one["callback"]}, line)
        self.take(";")

    def function(self, inline):
        line = self.line()
        training, must_check = False, False
        while self.peek() in ("static", "inline", "CLV_API", "CLV_TRAIN_API", "CLV_MUST_CHECK"):
            token = self.take()
            training, must_check = training or token == "CLV_TRAIN_API", must_check or token == "CLV_MUST_CHECK"
        marks = self.marks()
        result = self.pointers(self.base())
        name = self.take()
        what = {"result": {"type": spelled(result), "kind": result, "marks": marks}, "must_check": must_check,
                "training": training, "parameters": self.parameters()}
        if inline:
            self.balanced("{", "}")
        else:
            self.take(";")
        self.add("inline" if inline else "functions", name, what, line)

    def read(self):
        while self.peek():
            token, line = self.peek(), self.line()
            if token == "typedef":
                self.take()
                self.typedef()
            elif token == "static":
                self.function(inline=True)
            elif token in ("CLV_API", "CLV_TRAIN_API"):
                self.function(inline=False)
            elif token in ("struct", "enum"):
                self.take()
                tag = self.take() if self.peek() != "{" else ""
                if self.peek() == "{" and token == "struct":
                    self.add("structs", tag, {"members": self.members()}, line)
                elif self.peek() == "{":
                    self.enum(tag, line)
                self.take(";")
            elif token != ";":
                self.mistake("a declaration that begins with '%s'" % token)
            else:
                self.take()


def spelled(kind, callback=None, lengths=()):
    text = ("const " if kind["const"] else "") + kind["name"]
    text += (" " if kind["pointers"] else "") + " ".join("*const" if c else "*" for c in kind["pointers"]).replace("* *", "**")
    if callback:
        text = "%s (*)(%s)" % (callback["result"], ", ".join(p["type"] for p in callback["parameters"]) or "void")
    return text.replace("* *", "**") + "".join("[%d]" % n for n in lengths)


# ---- what pointers mean ---------------------------------------------------------------------------------------------

class Meaning:
    """Makes what types and marks tell of each parameter and member, or says that they do not."""

    def __init__(self, table):
        self.table = table
        self.of = None
        self.freed = set()

    def mistake(self, text):
        raise Mistake("%s:%d: %s: %s" % (self.of["header"], self.line, self.name, text))

    def ends(self, name):
        for end in ("_destroy", "_reset"):
            if name + end in self.table["functions"]:
                return name + end
        return None

    def callback_of(self, one):
        if one["callback"]:
            return one["callback"]
        named = self.table["callbacks"].get(one["kind"]["name"])
        return dict(named["callback"], name=one["kind"]["name"]) if named and not one["kind"]["pointers"] else None

    def length(self, count, all_of_it, what):
        """CLV_COUNT's argument is a constant, or leads to a number or a shape."""
        if re.match(r"^\d+$", count):
            return
        steps = re.split(r"->|\.", count)
        for step in steps:
            here = {p["name"]: p for p in all_of_it}.get(step)
            if not here:
                self.mistake("CLV_COUNT(%s) of '%s': there is no '%s'" % (count, what, step))
            all_of_it = self.table["structs"].get(here["kind"]["name"], {}).get("members", [])
        if here["kind"]["name"] not in NUMBERS | {"clv_shape"} or here["callback"]:
            self.mistake("CLV_COUNT(%s) of '%s': that is no number" % (count, what))

    def common(self, one, all_of_it, member):
        """What is told of parameters and members alike."""
        marks, kind, name = one["marks"], one["kind"], one["name"]
        self.line = one["line"]
        depth = len(kind["pointers"]) + (0 if member else len(one["lengths"]))
        base = kind["name"]
        if base not in STANDARD and not any(base in self.table[k] for k in ("structs", "enums", "callbacks", "names")):
            self.mistake("'%s' is of a type that no header declares: %s" % (name, base))
        callback = self.callback_of(one)
        out = "inout" if {"CLV_INOUT", "CLV_TAKEN"} & set(marks) else \
              "out" if {"CLV_OUT", "CLV_BORROWED"} & set(marks) else None
        if marks and not depth and not callback:
            self.mistake("'%s' is no pointer, and has a mark" % name)
        array = "count" if "CLV_COUNT" in marks else "comment" if "CLV_ARRAY" in marks else \
                "until_null" if "CLV_UNTIL_NULL" in marks else None
        count = marks.get("CLV_COUNT")
        if one["lengths"] and not member:
            array, count = "count", str(one["lengths"][0])
        elif count is not None:
            self.length(count, all_of_it, name)
        if out and depth == 1 and kind["const"] and "CLV_TAKEN" not in marks:
            self.mistake("'%s' is const, so nothing can be written there" % name)
        told = {"name": name, "type": one["type"], "out": out, "null": "CLV_OR_NULL" in marks, "array": array, "count": count,
                "owned": None, "kept": "CLV_KEPT" in marks, "taken": "CLV_TAKEN" in marks, "callback": callback}
        return told, depth, base

    def one_or_many(self, told, depth, base, const):
        """A pointer to a number, or to pointers, has to say how many there are."""
        if told["array"] or told["callback"]:
            return
        if depth == 1 and const and (base == "void" or (base in NUMBERS and base != "char")):
            self.mistake("'%s' (%s) is one, or an array? CLV_COUNT(n), CLV_ARRAY, CLV_UNTIL_NULL" % (told["name"], told["type"]))
        if depth == 1 and told["out"] and base in ("void", "char") and told["out"] != "inout":
            self.mistake("'%s' (%s): how much may be written there? CLV_COUNT(n), CLV_ARRAY" % (told["name"], told["type"]))

    def parameter(self, function, i, parameters):
        one = parameters[i]
        told, depth, base = self.common(one, parameters, member=False)
        name, pointers = one["name"], one["kind"]["pointers"]
        if told["callback"]:
            if not any(self.is_user(p) for p in parameters[i + 1:i + 2]):
                self.mistake("'%s' is a function; behind it stands no `void *user`" % name)
        elif self.is_user(one):
            told["null"], told["mistake"], told["user"] = True, False, parameters[i - 1]["name"]
            if not self.callback_of(parameters[i - 1]):
                self.mistake("'%s': before it stands no function" % name)
            return told
        elif depth == 1:
            ends = self.name in (base + "_destroy", base + "_reset", "clv_free")
            told["null"] = told["null"] or ends
            opaque = base not in self.table["structs"] and base not in STANDARD
            if ends and not opaque:
                told["out"] = "inout"
            elif not one["kind"]["const"] and not opaque and not told["out"]:
                self.mistake("'%s' (%s): is it read or written? CLV_OUT, CLV_INOUT" % (name, told["type"]))
            if told["out"] == "out" and base + "_reset" in self.table["functions"] and "CLV_BORROWED" not in one["marks"]:
                told["owned"] = base + "_reset"
        elif depth == 2 and not pointers[0] and not told["array"]:
            told["out"] = told["out"] or "out"
            if not one["kind"]["const"] and "CLV_BORROWED" not in one["marks"]:
                told["owned"] = self.ends(base)
                if not told["owned"] and (base == "char" or base in self.table["structs"]):
                    told["owned"] = "clv_free"
                    self.freed.add(base)
                if not told["owned"]:
                    self.mistake("'%s' (%s): there is no %s_destroy, so whose is it? CLV_BORROWED" % (name, told["type"], base))
        elif depth == 2 and not told["array"]:
            self.mistake("'%s' (%s) is an array of how many? CLV_COUNT(n), CLV_ARRAY, CLV_UNTIL_NULL" % (name, told["type"]))
        if depth:
            self.one_or_many(told, depth, base, one["kind"]["const"])
        follows = parameters[i + 1] if i + 1 < len(parameters) else None
        if depth and follows and LENGTH.match(follows["name"]) and (name.endswith("s") or follows["name"] != "n") and not follows["kind"]["pointers"] and \
                follows["kind"]["name"] in NUMBERS and told["array"] is None and base not in self.table["names"] and \
                not self.counted(follows["name"], parameters):
            self.mistake("'%s' is followed by '%s': is that its length? CLV_COUNT(%s)" % (name, follows["name"], follows["name"]))
        told["mistake"] = function["builds"] and depth == 1 and (
            base == "clv_tensor" or (base == "clv_graph" and not one["kind"]["const"]))
        return told

    @staticmethod
    def counted(name, parameters):
        return any(p["marks"].get("CLV_COUNT") == name or "CLV_ARRAY" in p["marks"] for p in parameters)

    @staticmethod
    def is_user(one):
        return one["kind"]["name"] == "void" and len(one["kind"]["pointers"]) == 1 and \
            (one["name"] == "user" or one["name"].endswith("_user"))

    def member(self, one, members):
        told, depth, base = self.common(one, members, member=True)
        told["lengths"] = one["lengths"]
        told["null"] = bool(depth) or bool(told["callback"])
        if self.is_user(one) or told["callback"]:
            return told
        beside = "n_" + one["name"]
        if depth and told["count"] != beside and any(m["name"] == beside for m in members):
            self.mistake("'%s' is beside '%s': CLV_COUNT(%s)" % (one["name"], beside, beside))
        if depth and not told["array"] and (depth > 1 or base == "void" or (base in NUMBERS and base != "char")):
            self.mistake("'%s' (%s) is an array of how many? CLV_COUNT(n), of one CLV_COUNT(1), CLV_ARRAY, CLV_UNTIL_NULL" %
                         (one["name"], told["type"]))
        return told

    def make(self):
        table = self.table
        table["inline"] = {name: what for name, what in table["inline"].items() if not name.startswith("clv__")}
        ops = {name: what for name, what in table["inline"].items() if what["header"] == "ops.h"}
        for self.name, function in list(table["functions"].items()) + list(ops.items()):
            self.of, self.line, result = function, function["line"], function["result"]
            kind, parameters = result["kind"], function["parameters"]
            is_tensor = kind["name"] == "clv_tensor" and bool(kind["pointers"])
            function["builds"] = is_tensor or (kind["name"] == "void" and not kind["pointers"])
            if result["marks"] and not kind["pointers"]:
                self.mistake("the result is no pointer, and has a mark")
            function["parameters"] = [self.parameter(function, i, parameters) for i in range(len(parameters))]
            function["result"] = {"type": result["type"], "null": "CLV_OR_NULL" in result["marks"] or is_tensor}
        for self.name, struct in table["structs"].items():
            self.of = struct
            struct["made"] = [self.member(one, struct["members"]) for one in struct["members"]]
        for struct in table["structs"].values():
            struct["members"] = struct.pop("made")
            struct["grows"] = bool(struct["members"]) and struct["members"][-1]["name"] == "reserved"
        for self.name, inline in table["inline"].items():
            if self.name in ops:
                continue
            inline["result"] = inline["result"]["type"]
            inline["parameters"] = [{"name": p["name"], "type": p["type"]} for p in inline["parameters"]]
        for name, where in table.pop("names").items():
            if name not in table["structs"]:
                table["handles"][name] = where
        for where in ("handles", "structs"):
            for name, what in table[where].items():
                what["ends_with"] = self.ends(name) or ("clv_free" if name in self.freed else None)


def read(folder):
    table = {"version": "", "functions": {}, "inline": {}, "handles": {}, "structs": {}, "enums": {}, "callbacks": {},
             "constants": {}, "names": {}}
    paths = sorted(glob.glob(os.path.join(folder, "cleave", "*.h")))
    if not paths:
        raise Mistake("%s/cleave: no headers" % folder)
    order, done = [], set()

    def visit(path):  # constants are declared before they are used
        if path in done:
            return
        done.add(path)
        for name in re.findall(r'^#include "(\w+\.h)"', open(path, encoding="utf-8").read(), flags=re.M):
            visit(os.path.join(folder, "cleave", name))
        order.append(path)

    for path in paths:
        visit(path)
    for path in order:
        Reader(path, table).read()
    Meaning(table).make()
    constants = table["constants"]
    table["version"] = ".".join(str(constants["CLV_VERSION_" + part]) for part in ("MAJOR", "MINOR", "PATCH"))
    return table


# ---- checks ---------------------------------------------------------------------------------------------------------

def check_library(table, library, most):
    lines = subprocess.run(["nm", "-D", "--defined-only", library], check=True, stdout=subprocess.PIPE, text=True).stdout
    exported = {line.split()[-1].split("@")[0] for line in lines.split("\n") if re.search(r" [A-Z] clv_", line)}
    declared = set(table["functions"])
    if exported - declared:
        raise Mistake("%s exports what the table does not have: %s" % (library, ", ".join(sorted(exported - declared))))
    if declared - exported:
        raise Mistake("the table has what %s does not export: %s" % (library, ", ".join(sorted(declared - exported))))
    if most and len(declared) > most:
        raise Mistake("%s exports %d functions, the most is %d" % (library, len(declared), most))
    experimental = sum(table["functions"][name]["experimental"] for name in declared)
    print("%d functions, %d of them experimental; %d inline, %d handles, %d structs, %d enums" % (
        len(declared), experimental, len(table["inline"]), len(table["handles"]), len(table["structs"]), len(table["enums"])))


def check_sources(table, folder):
    """A parameter that the function refuses when it is NULL must not say CLV_OR_NULL."""
    texts = [open(p, encoding="utf-8").read() for p in glob.glob(os.path.join(folder, "**", "*.c"), recursive=True)]
    bodies = {}
    for text in texts:
        for m in re.finditer(r"^(?!static)\w[^;{}#/\n]*?\b(clv_(?!_)\w+)\([^;{}]*\)\s*\{\n(.*?)^\}", text, flags=re.M | re.S):
            bodies[m.group(1)] = m.group(2)
    wrong = []
    for name, function in table["functions"].items():
        body = bodies.get(name, "")
        refused = set(re.findall(r"CLV__(?:GIVEN|USABLE)\((?:[^()]|\([^()]*\))*,\s*(\w+)\)", body))
        wrong += ["%s:%d: %s: '%s' is CLV_OR_NULL, and the function refuses it" % (function["header"], function["line"], name, p["name"])
                  for p in function["parameters"] if p["null"] and p["name"] in refused and "user" not in p]
    if wrong:
        raise Mistake("\n".join(wrong))
    if len(bodies) < len(table["functions"]) // 2:
        raise Mistake("%s: only %d of %d functions are defined there" % (folder, len(bodies), len(table["functions"])))


# ---- a NULL in each place -------------------------------------------------------------------------------------------

def value(parameter, table):
    """An argument that is no NULL. tests/misuse/every_null.h has a_TYPE for each handle."""
    kind, name = parameter["type"], parameter["name"]
    base = re.sub(r"^const ", "", kind).split(" ")[0].split("[")[0]
    if parameter["callback"]:
        function = parameter["callback"].get("name") or kind
        return "(%s)(void (*)(void))nothing" % function
    if parameter.get("user"):
        return "NULL"
    if "*" not in kind and "[" not in kind:
        if base in table["structs"]:
            return "(%s){0}" % base
        return "(%s)1" % kind if kind in table["enums"] else "1" if LENGTH.match(name) or name == "classes" else "0"
    if kind.count("*") == 1 and base in table["handles"]:
        return "a_" + base
    if kind == "const char *":
        return "a_text"
    if kind.endswith("*const *") and base in table["handles"]:
        return "&a_" + base
    if kind == "const char *const *":
        return "&a_text"
    return "room()"


# Whose functions use a runtime for sentences alone, and do without: no promise, so nothing to hold them to.
SENTENCES_ALONE = {"data.h", "io.h", "nn.h"}


def refusals(name, function, table):
    """Calls that have to be refused: each pointer that must not be NULL is it in turn."""
    parameters = function["parameters"]
    for i, one in enumerate(parameters):
        if one["null"] or not (one["callback"] or "*" in one["type"] or "[" in one["type"]):
            continue
        arguments = ["NULL" if k == i else value(p, table) for k, p in enumerate(parameters)]
        # a sentence is kept where an object before it leads to the runtime
        known = any(re.match(r"^(const )?(%s) \*$" % "|".join(table["handles"]), p["type"]) for p in parameters[:i])
        answer = "ANY" if i == 0 and one["type"] == "clv_runtime *" and function["header"] in SENTENCES_ALONE else \
                 "TOLD" if known else "REFUSED"
        yield 'CALL(%s, "%s", "%s", %s(%s));' % (answer, name, one["name"], name, ", ".join(arguments))


def let_through(name, function, table):
    """The call that has to do nothing: every pointer that may be NULL is it, and all tensors of a call that builds."""
    arguments, other = [], False
    for p in function["parameters"]:
        tensors = function["builds"] and p["type"] == "clv_tensor *const *"
        null = p["null"] or p.get("mistake")
        other = other or ("*" in p["type"] and not null and not function["builds"])
        arguments.append("NULL" if null else "&no_tensor" if tensors else value(p, table))
    if other or not any(a in ("NULL", "&no_tensor") for a in arguments):
        return
    call = "%s(%s)" % (name, ", ".join(arguments))
    builds = function["result"]["type"] == "clv_tensor *"
    yield 'PASSES("%s", %s%s);' % (name, "!" if builds else "", call if builds else "((void)%s, true)" % call)


def write_nulls(table, path):
    out = ["// SPDX-License-Identifier: Apache-2.0", "// Made by tools/declarations.py: a NULL in each place that a header tells of.",
           '#include "misuse/every_null.h"', ""]
    headers = []
    functions = dict(table["functions"], **{n: f for n, f in table["inline"].items() if f["header"] == "ops.h"})
    for header in sorted({f["header"] for f in functions.values()}):
        calls = []
        for name, function in functions.items():
            if function["header"] != header:
                continue
            if function["result"]["type"] == "clv_status":
                calls += refusals(name, function, table)
            else:
                calls += let_through(name, function, table)
        if calls:
            headers.append(header)
            out += ["static void %s(void) {" % header.replace(".", "_")] + ["    " + call for call in calls] + ["}", ""]
    out += ["static const part parts[] = {%s};" % ", ".join('{"%s", %s}' % (h, h.replace(".", "_")) for h in headers), "",
            "int main(void) {", "    return each(parts, sizeof parts / sizeof *parts);", "}", ""]
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(out))


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description="The public headers as a table.")
    parser.add_argument("include", nargs="?", default=os.path.join(here, "..", "include"))
    parser.add_argument("--library")
    parser.add_argument("--most", type=int)
    parser.add_argument("--sources")
    parser.add_argument("--nulls")
    asked = parser.parse_args()
    try:
        table = read(asked.include)
        if asked.sources:
            check_sources(table, asked.sources)
        if asked.nulls:
            write_nulls(table, asked.nulls)
        if asked.library:
            check_library(table, asked.library, asked.most)
    except Mistake as mistake:
        sys.exit(str(mistake))
    if not (asked.library or asked.sources or asked.nulls):
        json.dump(table, sys.stdout, indent=1)
        print()


if __name__ == "__main__":
    main()
