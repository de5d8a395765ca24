// SPDX-License-Identifier: Apache-2.0
// Compiles kernels for a Python process (clv_runtime_config.compile_helper).
#include <string.h>

#include "cleave/cleave.h"

int main(int argc, char **argv) {
    return argc != 2 || strcmp(argv[1], "compile-helper") || clv_compile_helper(0) != CLV_OK;
}
