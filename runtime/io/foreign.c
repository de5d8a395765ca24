// SPDX-License-Identifier: Apache-2.0
// Files of other programs that people give in place of a safetensors file, known by their content, and the line of Python that
// makes safetensors of them. A pickle can run any code when it is read, so none is read here.
// Source: PyTorch, torch/serialization.py (MAGIC_NUMBER of the format before 1.6; a ZIP archive with `NAME/data.pkl` since);
// APPNOTE.TXT of the ZIP format, section 4.3.7; numpy.lib.format (.npz is a ZIP archive of .npy files).
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "io/formats.h"

enum { ZIP_NAME_AT = 30, LOOKED_AT = ZIP_NAME_AT + 256 };

static bool ends_with(const char *text, size_t n, const char *tail) {
    size_t m = strlen(tail);
    return n >= m && memcmp(text + n - m, tail, m) == 0;
}

/** Text as one word of a POSIX shell. */
static void add_quoted(clv__text *out, const char *text) {
    clv__text_add(out, "'");
    for (; *text; text++) {
        if (*text == '\'')
            clv__text_add(out, "'\\''");
        else
            clv__text_add_bytes(out, text, 1);
    }
    clv__text_add(out, "'");
}

/** `python3 -c '...' 'weights.pth' 'weights.safetensors'` */
static void add_command(clv__text *out, const char *program, const char *path) {
    const char *dot = strrchr(path, '.'), *slash = strrchr(path, '/');
    size_t stem = dot && (!slash || dot > slash + 1) && dot > path ? (size_t)(dot - path) : strlen(path);
    clv__text made = {0};
    clv__text_add_bytes(&made, path, stem);
    clv__text_add(&made, ".safetensors");
    clv__text_add(out, "python3 -c '%s' ", program);
    add_quoted(out, path);
    clv__text_add(out, " ");
    add_quoted(out, clv__text_get(&made));
    clv__text_reset(&made);
}

static clv_status refuse(const clv__input *input, const char *what, const char *program,
                         const char *packages) {
    clv__text command = {0};
    add_command(&command, program, input->path);
    clv__error_set(input->error, CLV_E_FORMAT,
                   "'%s' is %s; make a safetensors file of it: %s (pip install %s)", input->path, what,
                   clv__text_get(&command), packages);
    clv__text_reset(&command);
    return CLV_E_FORMAT;
}

clv_status clv__foreign_check(const clv__input *input) {
    static const char pickle[] = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
    static const char of_torch[] =
        "import sys,torch; from safetensors.torch import save_file; "
        "d=torch.load(sys.argv[1],map_location=\"cpu\",weights_only=True); "
        "d=next((d[k] for k in (\"state_dict\",\"model_state_dict\",\"model\") if k in d),d); "
        "save_file({k.removeprefix(\"module.\"):v.contiguous().clone() for k,v in d.items() "
        "if torch.is_tensor(v)},sys.argv[2])";
    static const char of_numpy[] = "import sys,numpy; from safetensors.numpy import save_file; "
                                   "save_file(dict(numpy.load(sys.argv[1])),sys.argv[2])";
    static const char torch_file[] =
        "a PyTorch file: a pickle, which can run any code when it is read, so it is not read here";
    char start[LOOKED_AT] = "";
    size_t n = input->bytes < sizeof start ? (size_t)input->bytes : sizeof start;
    CLV_TRY(clv__input_read(input, 0, start, n));
    if (n >= sizeof pickle - 1 && memcmp(start, pickle, sizeof pickle - 1) == 0)
        return refuse(input, torch_file, of_torch, "torch safetensors");
    if (n <= ZIP_NAME_AT || memcmp(start, "PK\3\4", 4) != 0) return CLV_OK;
    size_t length = (size_t)(unsigned char)start[26] | (size_t)(unsigned char)start[27] << 8;
    if (length > n - ZIP_NAME_AT) return CLV_OK;
    if (ends_with(start + ZIP_NAME_AT, length, "data.pkl"))
        return refuse(input, torch_file, of_torch, "torch safetensors");
    if (ends_with(start + ZIP_NAME_AT, length, ".npy"))
        return refuse(input, "an archive of numpy arrays (.npz)", of_numpy, "numpy safetensors");
    return CLV_OK;
}
