#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Processor and wall seconds of each test, one after the other, most first: what .ci/run has to spend on it.

usage: tests/seconds.py BUILD_FOLDER [REGEX]     tests by ctest's names, in the environment that ctest gives them
"""
import json
import os
import re
import resource
import subprocess
import sys
import time


def properties(test):
    return {p["name"]: p["value"] for p in test.get("properties", [])}


def seconds(test):
    environment = dict(os.environ)
    for line in properties(test).get("ENVIRONMENT", []):
        name, _, value = line.partition("=")
        environment[name] = value
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    status = subprocess.run(test["command"], env=environment, cwd=properties(test).get("WORKING_DIRECTORY"),
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent, time.monotonic() - start, status, test["name"]


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    listed = subprocess.run(["ctest", "--test-dir", sys.argv[1], "--show-only=json-v1"], check=True,
                            stdout=subprocess.PIPE).stdout
    wanted = re.compile(sys.argv[2] if len(sys.argv) > 2 else "")
    rows = []
    for test in json.loads(listed)["tests"]:
        if wanted.search(test["name"]) and test.get("command"):
            rows.append(seconds(test))
            print("%8.1f %8.1f  %s" % (rows[-1][0], rows[-1][1], test["name"]), file=sys.stderr, flush=True)
    print("processor    wall  exit  test")
    for spent, wall, status, name in sorted(rows, reverse=True):
        print("%9.1f %7.1f  %4d  %s" % (spent, wall, status, name))
    print("%9.1f %7.1f        %d tests" % (sum(r[0] for r in rows), sum(r[1] for r in rows), len(rows)))


if __name__ == "__main__":
    main()
