# SPDX-License-Identifier: Apache-2.0
"""Finds the compilers of the offline matrix, and brings those that are not installed as packages: Intel's, unpacked from Debian's
packages (installed, they would be one more OpenCL driver), so a newer clang for AMD's matrix units, and NVIDIA's ptxas and
disassembler, from PyPI.

usage: tools.py         bring them into build/offline (or $CLEAVE_OFFLINE_TOOLS)
"""
import glob
import os
import shutil
import subprocess
import sys
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
FOLDER = os.environ.get("CLEAVE_OFFLINE_TOOLS", os.path.join(ROOT, "build", "offline"))
# Folder to packages of Debian.
PACKAGES = {"intel": ["intel-opencl-icd", "libigc1", "libigdfcl1", "libigdgmm12", "libopencl-clang14", "libllvmspirvlib14"],
            "clang": ["clang-19", "libclang-common-19-dev", "libclang-cpp19", "libllvm19"]}
# name -> the package of PyPI; figures are of these
NVIDIA = {"ptxas": "nvidia-cuda-nvcc-cu12==12.9.86", "nvdisasm": "nvidia-cuda-nvdisasm==13.5.37"}


def first(pattern):
    return next(iter(sorted(glob.glob(os.path.join(FOLDER, pattern), recursive=True))), None)


def link_to_iga(folders):
    """A folder with Intel's disassembler under the name by which ocloc loads it, which no package of Debian installs."""
    folder = os.path.join(FOLDER, "iga")
    link = os.path.join(folder, "libiga64.so")
    for library in (os.path.join(f, "libiga64.so.1") for f in sorted(folders)):
        if os.path.exists(library) and not os.path.exists(link):
            os.makedirs(folder, exist_ok=True)
            os.symlink(os.path.abspath(library), link)
    return folder


def find():
    """What there is: names to paths, and which targets have to be left out, and why."""
    import targets
    have = {"ocloc": shutil.which("ocloc") or first("intel/usr/bin/ocloc*")}
    have.update((name, first(f"nvidia/**/bin/{name}")) for name in NVIDIA)
    have["clang-19"] = first("clang/usr/lib/llvm-19/bin/clang") or shutil.which("clang-19")
    have["clang_libraries"] = ":".join(os.path.join(FOLDER, "clang", "usr", "lib", f) for f in ("x86_64-linux-gnu", "llvm-19/lib"))
    folders = {os.path.dirname(path) for path in glob.glob(os.path.join(FOLDER, "intel/**/*.so*"), recursive=True)}
    have["intel_libraries"] = ":".join([link_to_iga(folders | {"/usr/lib/x86_64-linux-gnu"}), *sorted(folders)])
    missing = {}
    for target, compiler in targets.TARGETS.items():
        if not shutil.which(targets.CLANG) or not os.path.exists(f"{targets.CLC}/amdgcn--amdhsa.bc"):
            if compiler is not targets.intel:
                missing[target] = "clang-15 and libclc-15 are not installed"
        if compiler is targets.intel and not have["ocloc"]:
            missing[target] = "there is no ocloc (tests/drivers/offline/tools.py brings it)"
        for name in NVIDIA:
            if compiler is targets.nvidia and not have[name]:
                missing[target] = f"there is no {name} (tests/drivers/offline/tools.py brings it from PyPI)"
        if compiler is targets.spirv and not (shutil.which("llvm-spirv-15") and shutil.which("spirv-val")):
            missing[target] = "llvm-spirv-15 and spirv-tools are not installed"
    return have, missing


def bring_packages(name):
    folder = os.path.join(FOLDER, name)
    packages = os.path.join(FOLDER, "packages")
    os.makedirs(packages, exist_ok=True)
    subprocess.run(["apt-get", "download", *PACKAGES[name]], cwd=packages, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for package in glob.glob(os.path.join(packages, "*.deb")):
        subprocess.run(["dpkg", "-x", package, folder], check=True)
    shutil.rmtree(packages)


def bring_nvidia(name):
    folder = os.path.join(FOLDER, "nvidia")
    wheels = os.path.join(FOLDER, "wheels")
    os.makedirs(FOLDER, exist_ok=True)
    subprocess.run([sys.executable, "-m", "venv", os.path.join(FOLDER, "venv")], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([os.path.join(FOLDER, "venv", "bin", "pip"), "download", "-q", "--no-deps", "-d", wheels, NVIDIA[name]], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for wheel in glob.glob(os.path.join(wheels, "*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            for member in archive.namelist():
                if member.endswith(f"bin/{name}"):
                    os.chmod(archive.extract(member, folder), 0o755)
    shutil.rmtree(wheels)
    shutil.rmtree(os.path.join(FOLDER, "venv"))


def main():
    have, _ = find()
    for name, bring, what in (("ocloc", bring_packages, "intel"), ("clang-19", bring_packages, "clang"),
                              *((name, bring_nvidia, name) for name in NVIDIA)):
        if have[name]:
            continue
        try:
            bring(what)
        except (subprocess.CalledProcessError, OSError) as error:
            print(f"left out: {name} could not be had: {error}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
