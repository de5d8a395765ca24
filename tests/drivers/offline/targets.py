# SPDX-License-Identifier: Apache-2.0
"""The compilers of the offline matrix: each turns a program into a dict of figures a kernel.

Figures, as far as a compiler tells them:
  registers   a work-item (VGPRs, registers; Intel: those of a thread are always 128)
  spills      bytes that registers are spilled to; Intel: memory of a thread for them, a power of two from 1,024 on
  scratch     bytes of private memory a work-item (arrays that did not become registers; spills are in it on AMD)
  local       bytes of local memory that the program itself declares
  waves       waves, warps or threads that fit on a unit beside each other, by registers (and local memory on AMD)
  simd        work-items of an instruction
  fma         part of FMAs, or of a matrix unit's instructions, among the instructions of the innermost loop with the most FMAs; - if no loop has any
  lds, glds   floats loaded from local and from global memory in that loop, for one FMA
  around      instructions of the loop around it, without it, for an FMA in a turn of it. (A tile's loop runs two to four turns of it)
  ahead       part of the loads from global memory before it, in the loop around it, that nothing waits for before it begins: they
              are on their way while it computes. - if there are none; not known of Intel and sm_70
"""
import functools
import glob
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import threading

CLANG = "clang-15"
CL = ["-x", "cl", "-cl-std=CL1.2", "-Xclang", "-finclude-default-header", "-Wno-everything"]
CLC = "/usr/lib/clc"


class Failed(Exception):
    pass


def run(command, env=None):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=env)
    if done.returncode:
        raise Failed(f"{' '.join(command[:1] + command[-3:])}:\n{done.stdout[-2000:]}")
    return done.stdout


MADE, MADE_LOCK = {}, threading.Lock()  # what several targets want alike, by the program's text


def once(make, source, *arguments):
    """make(source, ...), for the first that asks; the others get the same."""
    with open(source) as file:
        key = make, file.read()
    with MADE_LOCK:
        lock, made = MADE.setdefault(key, (threading.Lock(), []))
    with lock:
        if not made:
            made.append(make(source, *arguments))
        return made[0]


# ---- loops -----------------------------------------------------------------------------------------------------------

UNIT = re.compile(r"\b(?:HMMA|v_wmma|v_mfma|dpas)")


def innermost(lines, label, branches, weigh, on_their_way=None):
    """The figures of the innermost loop with the most FMAs. lines: instructions and labels of a kernel; label(line): a name or None;
    branches(line): the names that it may go to; weigh(line): (FMAs, floats from local memory, floats from global memory, 1 if it is an
    instruction); on_their_way(lines): how many loads from global memory there are in them, and how many are not waited for.
    A loop ends at its last way back, and one without FMAs is none. Where a kernel has a matrix unit's instructions, they alone count."""
    if any(UNIT.search(line) for line in lines):
        of_all, weigh = weigh, lambda line: (int(bool(UNIT.search(line))), *of_all(line)[1:])
    at = {}
    ends = {}
    for i, line in enumerate(lines):
        name = label(line)
        if name:
            at[name] = i
        for target in branches(line):
            if target in at:
                ends[at[target]] = i
    weights = {i: weigh(lines[i]) for i in {i for begin, end in ends.items() for i in range(begin, end + 1)}}
    loops = {}
    for begin, end in ends.items():
        sums = [sum(column) for column in zip(*(weights[i] for i in range(begin, end + 1)))]
        if sums[0]:
            loops[begin, end] = sums
    best, where = None, (0, 0)
    for begin, end in loops:
        if any((b, e) != (begin, end) and begin <= b and e <= end for b, e in loops):
            continue
        if best is None or loops[begin, end][0] > best[0]:
            best, where = loops[begin, end], (begin, end)
    if best is None:
        return {"fma": None, "lds": None, "glds": None, "around": None, "ahead": None}
    fmas, local, far, all_ = best
    figures = {"fma": fmas / all_, "lds": local / fmas, "glds": far / fmas, "around": None, "ahead": None}
    # Around it, the smallest that loads something more: compilers move a part of a loop before its beginning.
    wider = sorted((end - begin, begin, end) for begin, end in loops if begin <= where[0] and where[1] <= end and (begin, end) != where)
    for _n, begin, end in [w for w in wider if loops[w[1:]][2] > far][:1] or wider[:1]:
        figures["around"] = (loops[begin, end][3] - all_) / fmas
        loads, waiting = on_their_way(lines[begin:where[0]]) if on_their_way else (0, 0)
        if loads:
            figures["ahead"] = waiting / loads
    return figures


# ---- AMD -------------------------------------------------------------------------------------------------------------

WIDTH = {"b32": 1, "dword": 1, "b64": 2, "dwordx2": 2, "b96": 3, "dwordx3": 3, "b128": 4, "dwordx4": 4}


def amd_weigh(line):
    word = line.split(None, 1)[0] if line.strip() else ""
    return amd_weigh_words(word, line if word.startswith("v_dual_") else word)


@functools.cache
def amd_weigh_words(word, words):
    """word: the instruction; words: it, or all of a line with two of them."""
    if not re.match(r"[a-z]", word) or word.endswith(":"):
        return 0, 0, 0, 0
    fmas = len(re.findall(r"\bv_(?:dual_)?(?:fma|fma_mix|mad_mix|fmac|mac|mad|fmaak|fmamk|madak|madmk)(?:_legacy)?(?:_f32|ak_f32|mk_f32)", words))
    fmas += 2 * len(re.findall(r"\bv_pk_fma_f(?:32|16)", words)) + len(re.findall(r"\bv_(?:wmma|mfma)_f32", words))
    local = far = 0
    found = re.match(r"(ds_(?:read|load)(2?)(?:st64)?|ds_load_2addr(?:_stride64)?)_(b\d+|u\w+|i\w+)", word)
    if found:
        local = WIDTH.get(found.group(3), 1) * (2 if "2" in found.group(1).replace("b128", "") else 1)
    found = re.match(r"(?:global|flat|buffer)_load_(\w+)", word)
    if found:
        far = WIDTH.get(found.group(1), 1)
    return fmas, local, far, 2 if word.startswith("v_dual_") else 1


def amd_on_their_way(lines):
    """Loads return in order, and a counter says how many are still to come."""
    loads = waiting = 0
    for line in lines:
        if re.match(r"\s*(?:global|flat|buffer)_load_", line):
            loads, waiting = loads + 1, waiting + 1
        for most in re.findall(r"\bvmcnt\((\d+)\)", line):
            waiting = min(waiting, int(most))
    return loads, waiting


# They have f16. The driver's library inlines conversions, libclc has none: here the language's own stand for them.
HALVES = ["-DF16_WAY=1", "-Dconvert_float(v)=((float)(v))", "-Dconvert_half_rte(v)=((half)(v))",
          *(f"-Dconvert_float{n}(v)=__builtin_convertvector(v, float{n})" for n in (2, 4, 8, 16)),
          *(f"-Dconvert_half{n}_rte(v)=__builtin_convertvector(v, half{n})" for n in (2, 4, 8, 16))]


def amd(target, source, folder, _tools, clang=CLANG, env=None):
    out = os.path.join(folder, f"{target}.s")
    run([clang, *CL, *HALVES, "-O3", "-target", "amdgcn--amdhsa", f"-mcpu={target}", "-nogpulib", "-Xclang", "-mlink-builtin-bitcode",
         "-Xclang", f"{CLC}/amdgcn--amdhsa.bc", "-mllvm", "-amdgpu-internalize-symbols",  # no code for what kernels inline
         "-S", source, "-o", out], env)
    kernels = {}
    with open(out) as file:
        text = file.read()
    os.remove(out)
    for part in re.split(r"^(?=\w+:\s+; @\w+$)", text, flags=re.M)[1:]:
        name = part[:part.index(":")]
        info = re.search(r"^; Kernel info:\n(.*?)^; COMPUTE_PGM", part, re.S | re.M)
        if not info:
            continue  # a function that was not inlined
        say = dict(re.findall(r"^; (\w+): (\d+)", info.group(1), re.M))
        figures = innermost(part[:part.index(".Lfunc_end")].splitlines(),
                            lambda line: (re.match(r"(\.?LBB\w+):", line) or [None, None])[1],
                            lambda line: re.findall(r"s_c?branch\w*\s+(\.?LBB\w+)", line) if "branch" in line else [], amd_weigh,
                            amd_on_their_way)
        figures.update(registers=int(say["NumVgprs"]), scratch=int(say["ScratchSize"]), local=int(say["LDSByteSize"]),
                       waves=int(say["Occupancy"]), simd=32 if len(target) > 6 else 64, spills=0)
        kernels[name] = figures
    for found in re.finditer(r"\.name:\s+(\w+)\n(.*?)\.wavefront_size", text, re.S):
        if found.group(1) in kernels:
            kernels[found.group(1)]["spills"] = 4 * int((re.search(r"vgpr_spill_count:\s+(\d+)", found.group(2)) or [0, 0])[1])
    return kernels


# ---- NVIDIA ----------------------------------------------------------------------------------------------------------

def ptx_weigh(line):
    word = line.split()[0] if line.split() else ""
    if word.startswith("@"):
        word = line.split()[1]
    if not re.match(r"[a-z]", word):
        return 0, 0, 0, 0
    fmas = 1 if word.startswith("fma.rn.f") else 0
    width = 4 if ".v4." in word else 2 if ".v2." in word else 1
    return fmas, width if word.startswith("ld.shared") else 0, width if word.startswith("ld.global") else 0, 1


# machine -> the language of its PTX, and by what programs for it convert halves (device/f16.h) and multiply matrices. ptxas takes it
# for later machines, too.
PTX = {"sm_70": ("+ptx63", "-DF16_WAY=3", "-DMATRIX_UNIT=0"), "sm_80": ("+ptx75", "-DF16_WAY=2", "-DMATRIX_UNIT=1"),
       "sm_90": ("+ptx75", "-DF16_WAY=2", "-DMATRIX_UNIT=2")}
NEWER = {"sm_90": "7.8"}  # PTX that clang writes for sm_80, as it knows no later machine


def ptx_text(source, machine, options):
    known = "sm_80" if machine in NEWER else machine
    with tempfile.NamedTemporaryFile(suffix=".ptx") as out:
        run([CLANG, *CL, *options, "-O3", "-target", "nvptx64-nvidia-cuda", "-Xclang", "-target-cpu", "-Xclang", known, "-Xclang",
             "-target-feature", "-Xclang", PTX[machine][0], "-Xclang", "-mlink-builtin-bitcode", "-Xclang",
             f"{CLC}/nvptx64--nvidiacl.bc", "-S", source, "-o", out.name])
        with open(out.name) as file:
            text = file.read()
    if machine in NEWER:
        text = re.sub(r"^\.version .*", f".version {NEWER[machine]}", text, flags=re.M)
        text = re.sub(r"^\.target .*", f".target {machine}", text, flags=re.M)
    return text


def ptx_of(source, machine):
    """The program, and the figures of its loops."""
    text = ptx_text(source, machine, PTX[machine][1:])
    loops = {}
    for found in re.finditer(r"\.entry (\w+)\((.*?)^\}", text, re.S | re.M):
        loops[found.group(1)] = innermost(
            found.group(2).splitlines(), lambda line: (re.match(r"(\$L\w+):", line) or [None, None])[1],
            lambda line: re.findall(r"bra(?:\.uni)?\s+(\$L\w+)", line) if "$L" in line else [], ptx_weigh)
    return text, loops


PTX_OF = {machine: functools.partial(ptx_of, machine=machine) for machine in PTX}  # each made once


def sass_weigh(line):
    found = re.match(r"(?:@!?U?P\d+ )?([A-Z]\w*)(\S*)(.*)", line)
    if not found:
        return 0, 0, 0, 0
    word, kind, rest = found.groups()
    fmas = 1 if word in ("FFMA", "HMMA") else 2 if word == "HFMA2" and "RZ" not in rest else 0  # with zeros it is how a constant is loaded
    width = 4 if ".128" in kind else 2 if ".64" in kind else 1
    return fmas, width if word == "LDS" else 0, width if word == "LDG" else 0, 1


def sass_on_their_way(lines):
    """A load is waited for where a register of it is read."""
    loads, waiting = 0, {}  # register -> the load that it waits for
    for line in lines:
        found = re.match(r"(?:@!?U?P\d+ )?(\w+)(\S*) (.*)", line)
        if not found:
            continue
        word, kind, rest = found.groups()
        registers = [int(r) for r in re.findall(r"\bR(\d+)", rest)]
        is_load = word == "LDG" and registers
        looked_at = {waiting.get(r) for r in registers[1 if is_load else 0:]}
        waiting = {r: load for r, load in waiting.items() if load not in looked_at}
        if is_load:
            loads += 1
            for r in range(4 if ".128" in kind else 2 if ".64" in kind else 1):
                waiting[registers[0] + r] = loads
    return loads, len(set(waiting.values()))


def sass_loops(code, tools):
    """kernel's name -> the figures of its loops, of the machine's own instructions."""
    loops = {}
    for part in re.split(r"^\.text\.", run([tools["nvdisasm"], "-c", code]), flags=re.M)[1:]:
        lines = [re.sub(r"^\s*/\*\w+\*/\s*|\s*;.*$", "", line) for line in part.splitlines()]
        loops[part[:part.index(":")]] = innermost(
            lines, lambda line: (re.match(r"(\.L_x_\d+):", line) or [None, None])[1],
            lambda line: re.findall(r"\bBRA\b.*`\((\.L_x_\d+)\)", line) if "BRA" in line else [], sass_weigh, sass_on_their_way)
    return loops


def nvidia(target, source, folder, tools):
    machine = max(m for m in PTX if m <= target)
    text, loops = once(PTX_OF[machine], source)
    ptx, code = os.path.join(folder, f"{target}.ptx"), os.path.join(folder, f"{target}.cubin")
    with open(ptx, "w") as file:
        file.write(text)
    said = run([tools["ptxas"], f"-arch={target}", "-v", ptx, "-o", code])
    if target != "sm_70":  # whose code that disassembler does not know
        loops = sass_loops(code, tools)
    os.remove(ptx)
    os.remove(code)
    kernels = {}
    for found in re.finditer(r"entry function '(\w+)'.*?(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
                             r".*?Used (\d+) registers([^\n]*)", said, re.S):
        name, stack, stores, loads, registers, rest = found.groups()
        shared = re.search(r"(\d+) bytes smem", rest)
        warps = 65536 // (32 * max(8, (int(registers) + 7) // 8 * 8))
        kernels[name] = dict(loops.get(name, {}), registers=int(registers), scratch=int(stack), spills=int(stores) + int(loads),
                             local=int(shared.group(1)) if shared else 0, waves=min(64, warps), simd=32)
    return kernels


# ---- Intel -----------------------------------------------------------------------------------------------------------

def gen_weigh(line):
    found = re.match(r"\s*(?:\([^)]*\)\s*)?([a-z][\w.]*)\s*\(", line)
    if not found:
        return 0, 0, 0, 0
    word = found.group(1)
    fmas = 1 if word.startswith("dpas") or word in ("mad", "mac", "madm") and re.search(r":h?f\b", line) else 0
    told = re.search(r"// wr:[^,]*, rd:(\d+);", line)  # registers of 32 bytes that come back
    if not told or not int(told.group(1)) or "fence" in line:
        return fmas, 0, 0, 1
    floats = max(1, 8 * int(told.group(1)) // int(re.search(r"\((\d+)\|M\d+\)", line).group(1)))
    # Local memory is a surface of its own (0xFE), or named in newer messages.
    local = ".slm" in word or re.search(r"0x\w+FE\b", line)
    return fmas, floats if local else 0, 0 if local else floats, 1


def gen_label(line):
    return None if line[:1] in " (" else (re.match(r"(\w+):", line) or [None, None])[1]


def gen_branches(line):
    if not any(word in line for word in ("goto", "while", "jmpi")) or not re.search(r"\b(?:while|jmpi|goto)\b", line):
        return []
    return re.findall(r"\s(\w*L\w+|_\w+)", line)


def patch_tokens(text):
    """Of a program's patch list, as ocloc writes it: kernel's name -> token -> its bytes' dwords, of the last of that token."""
    kernels = {}
    for part in text.split("\tKernelName ")[1:]:
        tokens = kernels.setdefault(part.split("\n", 1)[0].strip(), {})
        for number, octets in re.findall(r"Token (\d+)\n\t4 Size \d+\n\tHex ([0-9a-f ]*)", part):
            octets = bytes(int(octet, 16) for octet in octets.split())
            tokens[int(number)] = [int.from_bytes(octets[i:i + 4], "little") for i in range(0, len(octets), 4)]
    return kernels


SCRATCH_SPACE, EXECUTION = 18, 23  # tokens: memory of a thread for what is in no register; how a kernel is run


def ocloc(tools, *arguments):
    return run([tools["ocloc"], *arguments], dict(os.environ, LD_LIBRARY_PATH=tools["intel_libraries"]))


# Intel's devices have sub-groups in OpenCL C 1.2, and f16: programs begin as device/sub_groups.h and device/f16.h say.
def intel_options(source):
    """As clv__program_options of runtime/device/source.c has it for programs of DPAS."""
    with open(source) as file:
        dpas = "#define MATRIX_UNIT 5\n" in file.read()
    return ["-options", "-cl-std=CL1.2 -DSUB_GROUPS=1 -DF16_WAY=1" + " -cl-intel-256-GRF-per-thread" * dpas]


def intel_device(target):
    """DG2 as it was sold (A770, A750): the first steppings, which ocloc takes by itself, have no messages that read as much as a card's."""
    return ["-device", target] + ["-revision_id", "8"] * (target == "dg2")


def intel_source(source, tools, target, folder):
    """Compiles into the folder. Gives what the compiler's first half left: the same for all devices, and the same code comes of it."""
    ocloc(tools, "compile", "-file", source, *intel_device(target), *intel_options(source), "-out_dir", folder)
    name = next(name for name in os.listdir(folder) if name.endswith(".spv"))
    with open(os.path.join(folder, name), "rb") as file:
        return file.read()


def binaries(folder):
    return [os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".bin")]


def intel(target, source, folder, tools):
    """Compiled as the driver does it, then taken apart: the compiler's own dumps take longer than its compiling."""
    dump = os.path.join(folder, f"dump-{target}")
    shutil.rmtree(dump, ignore_errors=True)
    os.mkdir(dump)
    half = once(intel_source, source, tools, target, dump)
    if not binaries(dump):
        with open(os.path.join(dump, "program.spv"), "wb") as file:
            file.write(half)
        ocloc(tools, "compile", "-spirv_input", "-file", file.name, *intel_device(target), *intel_options(source), "-out_dir", dump)
    ocloc(tools, "disasm", "-file", binaries(dump)[0], "-device", target, "-dump", os.path.join(dump, "parts"))
    with open(os.path.join(dump, "parts", "PTM.txt")) as file:
        tokens = patch_tokens(file.read())
    kernels = {}
    for name, told in tokens.items():
        with open(os.path.join(dump, "parts", f"{name}_KernelHeap.asm"), errors="replace") as file:
            lines = file.read().splitlines()
        figures = innermost(lines, gen_label, gen_branches, gen_weigh)
        figures.update(registers=128, spills=told.get(SCRATCH_SPACE, [0, 0])[1], scratch=0, local=None, waves=None,
                       simd=told[EXECUTION][3])
        kernels[name] = figures
    shutil.rmtree(dump)
    return kernels


# ---- SPIR-V ----------------------------------------------------------------------------------------------------------

def spirv(target, source, folder, _tools):
    bitcode, binary = os.path.join(folder, f"{target}.bc"), os.path.join(folder, f"{target}.spv")
    run([CLANG, *CL, "-O0", "-target", "spir-unknown-unknown", "-Xclang", "-disable-llvm-passes", "-emit-llvm", "-c", source, "-o", bitcode])
    run(["llvm-spirv-15", "--spirv-max-version=1.0", bitcode, "-o", binary])
    run(["spirv-val", "--target-env", "opencl1.2", binary])
    names = set(re.findall(r'OpEntryPoint Kernel \S+ "(\w+)"', run(["spirv-dis", binary])))
    os.remove(bitcode)
    os.remove(binary)
    return {name: {} for name in names}


# In the order of the table's columns. The real compilers of AMD and NVIDIA for these are other builds of the same LLVM and ptxas.
TARGETS = {
    "gfx803": amd, "gfx906": amd, "gfx1030": amd, "gfx1100": amd,
    "skl": intel, "tgllp": intel, "dg2": intel,
    "sm_70": nvidia, "sm_80": nvidia, "sm_90": nvidia,
    "spir": spirv,
}
WITH_UNITS = ["sm_80", "sm_90"]  # those for whose matrix units there are kernels


@functools.cache
def said(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace").stdout


@functools.cache
def file_hash(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def version_of(target, tools):
    """What its figures depend on beside the program's text: the compilers, and this file, which reads what they say."""
    maker = TARGETS[target]
    compilers = file_hash(os.path.abspath(__file__))
    if maker is not intel:
        compilers += said(CLANG, "--version")
    if maker is amd:
        compilers += file_hash(f"{CLC}/amdgcn--amdhsa.bc")
    if maker is nvidia:
        compilers += file_hash(f"{CLC}/nvptx64--nvidiacl.bc") + said(tools["ptxas"], "--version") + file_hash(tools["nvdisasm"])
    if maker is intel:
        found = [glob.glob(f"{folder}/libigc.so.1") for folder in ["/usr/lib/x86_64-linux-gnu", *tools["intel_libraries"].split(":")]]
        compilers += "".join(file_hash(path) for path in [tools["ocloc"], *sum(found, [])])
    if maker is spirv:
        compilers += said("llvm-spirv-15", "--version") + said("spirv-val", "--version")
    return compilers
