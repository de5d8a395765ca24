// SPDX-License-Identifier: Apache-2.0
// Files that people give in place of what is wanted, known by their content: what they are, and what to do, often the line of Python
// that makes the right file of them. A pickle can run any code when it is read, so none is read here.
// Source: PyTorch, torch/serialization.py (MAGIC_NUMBER of the format before 1.6; a ZIP archive with `NAME/data.pkl` since);
// APPNOTE.TXT of the ZIP format, section 4.3.7; numpy.lib.format (.npz is a ZIP archive of .npy files); GGUF's and Git LFS's
// specifications; HDF5 File Format Specification 3.0, II.A.
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

// ---- kinds ------------------------------------------------------------------------------------------------

/** The beginning of a file. */
typedef struct start {
    char bytes[LOOKED_AT + 1];
    size_t n;
} start;

static bool begins(const start *s, const char *with, size_t n) {
    return s->n >= n && !memcmp(s->bytes, with, n);
}
#define BEGINS(s, with) begins(s, with, sizeof with - 1)

/** The name of a ZIP archive's first member ends so. */
static bool first_member_ends(const start *s, const char *tail) {
    if (s->n <= ZIP_NAME_AT || !BEGINS(s, "PK\3\4")) return false;
    const size_t length = (size_t)(unsigned char)s->bytes[26] | (size_t)(unsigned char)s->bytes[27] << 8;
    return length <= s->n - ZIP_NAME_AT && ends_with(s->bytes + ZIP_NAME_AT, length, tail);
}

static bool is_torch(const start *s) {
    return BEGINS(s, "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19") ||
           first_member_ends(s, "data.pkl");
}

static bool is_pickle(const start *s) {
    return s->n > 2 && s->bytes[0] == '\x80' && s->bytes[1] >= 2 && s->bytes[1] <= 5;
}

static bool is_npz(const start *s) {
    return first_member_ends(s, ".npy");
}

static bool is_npy(const start *s) {
    return BEGINS(s, "\x93NUMPY");
}

/** A length that may be, and the beginning of an object. */
static bool is_safetensors(const start *s) {
    return s->n > 9 && s->bytes[8] == '{' && !memcmp(s->bytes + 5, "\0\0\0", 3);
}

static bool is_gguf(const start *s) {
    return BEGINS(s, "GGUF");
}

static bool is_hdf5(const start *s) {
    return BEGINS(s, "\x89HDF\r\n\x1a\n");
}

static bool is_pointer(const start *s) {
    return BEGINS(s, "version https://git-lfs.github.com/spec/");
}

/** Where its text begins; it ends in a zero. */
static const char *text_of(const start *s) {
    const char *at = s->bytes + (BEGINS(s, "\xef\xbb\xbf") ? 3 : 0);
    return at + strspn(at, " \t\r\n");
}

static bool is_page(const start *s) {
    return clv__same_letters(text_of(s), "<!doctype html", 14) || clv__same_letters(text_of(s), "<html", 5);
}

static bool is_picture(const start *s) {
    return BEGINS(s, "\x89PNG\r\n") || BEGINS(s, "\xff\xd8\xff") || BEGINS(s, "GIF8") || BEGINS(s, "II*\0") ||
           BEGINS(s, "MM\0*") || (s->n > 10 && BEGINS(s, "BM") && !memcmp(s->bytes + 6, "\0\0\0\0", 4)) ||
           (s->n > 12 && BEGINS(s, "RIFF") && !memcmp(s->bytes + 8, "WEBP", 4));
}

static bool is_parquet(const start *s) {
    return BEGINS(s, "PAR1");
}

/** Any ZIP archive, or a file of the older Office: asked for after those that are known better. */
static bool is_workbook(const start *s) {
    return BEGINS(s, "PK\3\4") || BEGINS(s, "\xd0\xcf\x11\xe0");
}

static bool is_database(const start *s) {
    return BEGINS(s, "SQLite format 3");
}

static bool is_xml(const start *s) {
    return clv__same_letters(text_of(s), "<?xml", 5);
}

static bool is_gzip(const start *s) {
    return BEGINS(s, "\x1f\x8b\x08");
}

/** Letters of UTF-8, and what stands between them. No length and no number of a binary file is
 *  made of these alone. */
static bool is_text(const start *s) {
    for (size_t i = 0; i < s->n; i++) {
        const unsigned char c = (unsigned char)s->bytes[i];
        if (c == 127 || c >= 0xf8 || (c < ' ' && c != '\t' && c != '\r' && c != '\n' && c != '\f'))
            return false;
    }
    return s->n > 0;
}

/** The beginning of an object or a list. */
static bool is_json(const start *s) {
    const char *at = text_of(s);
    if (!is_text(s) || (*at != '{' && *at != '[')) return false;
    at += 1 + strspn(at + 1, " \t\r\n");
    return *at == '"' || *at == '{' || *at == '[' || *at == '}' || *at == ']';
}

/** Its first line has something between columns. */
static bool is_table(const start *s) {
    const char *at = text_of(s), *mark = at + strcspn(at, ",;\t|\n");
    return is_text(s) && *mark && *mark != '\n';
}

static const char of_torch[] =
    "import sys,torch; from safetensors.torch import save_file; "
    "d=torch.load(sys.argv[1],map_location=\"cpu\",weights_only=True); "
    "d=next((d[k] for k in (\"state_dict\",\"model_state_dict\",\"model\") if k in d),d); "
    "save_file({k.removeprefix(\"module.\"):v.contiguous().clone() for k,v in d.items() "
    "if torch.is_tensor(v)},sys.argv[2])";
static const char of_numpy[] = "import sys,numpy; from safetensors.numpy import save_file; "
                               "save_file(dict(numpy.load(sys.argv[1])),sys.argv[2])";
static const char of_hdf5[] =
    "import sys,h5py; from safetensors.numpy import save_file; d={}; "
    "h5py.File(sys.argv[1]).visititems(lambda k,v: d.update({k.replace(\"/\",\".\"):v[()]}) "
    "if hasattr(v,\"dtype\") and v.dtype.kind in \"fiu\" else None); save_file(d,sys.argv[2])";

/** A kind of file, and what to do with one where something is wanted. */
typedef struct kind {
    bool (*is)(const start *s);
    const char *what;
    const char *program, *packages;  // make a safetensors file of it; NULL: there is no such
    const char *remedy[CLV__WANTED]; // NULL: none is known
    unsigned fits;                   // bits: what it is good for
} kind;

enum {
    FITS_WEIGHTS = 1 << CLV__WANT_WEIGHTS | 1 << CLV__WANT_CHECKPOINT,
    FITS_ARRAY = 1 << CLV__WANT_ARRAY,
    FITS_ARRAYS = 1 << CLV__WANT_ARRAYS,
    FITS_TEXT = 1 << CLV__WANT_TEXT,
    FITS_WORDS = FITS_TEXT | 1 << CLV__WANT_TABLE | 1 << CLV__WANT_TOKENIZER
};

#define EVERYWHERE(text)                                                                                     \
    { text, text, text, text, text, text, text, text }
static const kind kinds[] = {
    // First, for it begins with a length, which may look like another's mark: 640 like a pickle's.
    {.is = is_safetensors,
     .what = "a safetensors file",
     .fits = FITS_WEIGHTS | FITS_TEXT,
     .remedy =
         {[CLV__WANT_ARRAY] = "save a tensor of it with numpy.save('x.npy', "
                              "safetensors.numpy.load_file('x.safetensors')['NAME'])",
          [CLV__WANT_ARRAYS] =
              "save its tensors with numpy.savez('x.npz', **safetensors.numpy.load_file('x.safetensors'))",
          [CLV__WANT_MODEL] =
              "it holds weights alone; an ONNX file holds the nodes too, and torch.onnx.export writes one"}},
    {.is = is_torch,
     .fits = FITS_TEXT,
     .what = "a PyTorch file: a pickle, which can run any code when it is read, so it is not read here",
     .program = of_torch,
     .packages = "torch safetensors",
     .remedy = {[CLV__WANT_CHECKPOINT] =
                    "training goes on only from a checkpoint that a training wrote; its weights "
                    "can be loaded once they are a safetensors file",
                [CLV__WANT_ARRAY] = "save a tensor of it with numpy.save('x.npy', tensor.numpy())",
                [CLV__WANT_ARRAYS] = "save its tensors with numpy.savez('x.npz', name=tensor.numpy())",
                [CLV__WANT_MODEL] =
                    "torch.onnx.export(model, example_inputs, 'x.onnx') in Python writes one"}},
    {.is = is_pickle,
     .fits = FITS_TEXT,
     .what = "a pickle, which can run any code when it is read, so it is not read here",
     .remedy = {"load it in Python and save its arrays with safetensors.numpy.save_file",
                "training goes on only from a checkpoint that a training wrote",
                "load it in Python and save an array with numpy.save('x.npy', array)",
                "load it in Python and save its arrays with numpy.savez('x.npz', name=array)"}},
    {.is = is_npz,
     .what = "an archive of numpy arrays (.npz)",
     .program = of_numpy,
     .packages = "numpy safetensors",
     .fits = FITS_ARRAYS | FITS_TEXT,
     .remedy = {[CLV__WANT_CHECKPOINT] = "training goes on only from a checkpoint that a training wrote",
                [CLV__WANT_ARRAY] = "give it as `arrays FILE`, or save one of them with numpy.save('x.npy', "
                                    "numpy.load('x.npz')['NAME'])"}},
    {.is = is_npy,
     .what = "an array of numpy (.npy)",
     .fits = FITS_ARRAY | FITS_TEXT,
     .remedy =
         {"weights have a name for each array; of a dict of arrays safetensors.numpy.save_file makes them",
          "training goes on only from a checkpoint that a training wrote", NULL,
          "save arrays under their names with numpy.savez('x.npz', x=x, y=y), or give the folder of such "
          "files"}},
    {.is = is_gguf,
     .fits = FITS_TEXT,
     .what = "a GGUF file, weights as llama.cpp has them, which are not read here",
     .remedy = {"fetch the same model as .safetensors, which its page on Hugging Face has most often",
                "training goes on only from a checkpoint that a training wrote",
                "GGUF holds no data to learn from", "GGUF holds no data to learn from"}},
    {.is = is_hdf5,
     .fits = FITS_TEXT,
     .what = "an HDF5 file, as h5py and Keras write them",
     .program = of_hdf5,
     .packages = "h5py safetensors",
     .remedy = {[CLV__WANT_CHECKPOINT] = "training goes on only from a checkpoint that a training wrote",
                [CLV__WANT_ARRAY] =
                    "save an array of it with numpy.save('x.npy', h5py.File('x.h5')['NAME'][()])",
                [CLV__WANT_ARRAYS] =
                    "save its arrays with numpy.savez('x.npz', x=h5py.File('x.h5')['NAME'][()])",
                [CLV__WANT_MODEL] = "model.export('x.onnx', format='onnx') of Keras writes one"}},
    {.is = is_pointer,
     .what = "a Git LFS pointer, which stands for a file that was not fetched",
     .remedy = EVERYWHERE("`git lfs pull` in its folder fetches it")},
    {.is = is_page,
     .fits = FITS_TEXT,
     .what = "a web page",
     .remedy = EVERYWHERE(
         "the address that it was fetched from gave a page and not the file: open it in a browser to see "
         "why; on Hugging Face a file's address has /resolve/ where its page has /blob/")},
    {.is = is_picture,
     .fits = FITS_TEXT,
     .what = "a picture",
     .remedy = {NULL, NULL, "`images DIR` takes a folder of pictures",
                "`images DIR` takes a folder of pictures"}},
    {.is = is_parquet,
     .fits = FITS_TEXT,
     .what = "a Parquet table",
     .remedy = {NULL, NULL,
                "make a table of it with pandas.read_parquet('x.parquet').to_csv('x.csv', index=False)",
                "make a table of it with pandas.read_parquet('x.parquet').to_csv('x.csv', index=False), for "
                "`csv FILE`"}},
    {.is = is_workbook,
     .fits = FITS_TEXT | FITS_ARRAYS, // which looks for its directory at its end, and says what it lacks
     .what = "a workbook or another ZIP",
     .remedy = {[CLV__WANT_TABLE] = "save the sheet as CSV (UTF-8)"}},
    {.is = is_database,
     .fits = FITS_TEXT,
     .what = "a database of SQLite",
     .remedy = {[CLV__WANT_TABLE] = "export a table of it as CSV"}},
    {.is = is_xml,
     .fits = FITS_TEXT,
     .what = "XML",
     .remedy = {[CLV__WANT_TABLE] = "save it as CSV (UTF-8)"}},
    {.is = is_gzip,
     .fits = FITS_TEXT,
     .what = "a file packed by gzip",
     .remedy = EVERYWHERE("`gunzip` unpacks it")},
    {.is = is_json,
     .fits = FITS_TEXT | 1 << CLV__WANT_TOKENIZER,
     .what = "JSON",
     .remedy = {"a model's config.json or index has no weights, they lie beside it",
                "training goes on only from a checkpoint that a training wrote",
                "save the values with numpy.save('x.npy', numpy.array(json.load(open('x.json'))))",
                "save the values with numpy.savez('x.npz', name=numpy.array(...))",
                "make a table of it with pandas.read_json('x.json').to_csv('x.csv', index=False)"}},
    {.is = is_table,
     .fits = FITS_WORDS,
     .what = "a text, most likely a table (CSV)",
     .remedy = {"`csv FILE` takes a table to learn from, and a training writes weights",
                "training goes on only from a checkpoint that a training wrote", "`csv FILE` takes a table",
                "`csv FILE` takes a table"}},
    {.is = is_text,
     .fits = FITS_WORDS,
     .what = "a text",
     .remedy = {"`text FILE` takes a text to learn from, and a training writes weights",
                "training goes on only from a checkpoint that a training wrote",
                "save numbers in it with numpy.save('x.npy', numpy.loadtxt('x.txt'))",
                "save numbers in it with numpy.savez('x.npz', x=numpy.loadtxt('x.txt'))"}},
};

static clv_status refuse(const clv__input *input, const kind *k, clv__wanted wanted) {
    static const char *const wants[CLV__WANTED] = {"weights are wanted as a .safetensors file",
                                                   "a checkpoint is wanted",
                                                   "an .npy file of one array is wanted",
                                                   "an .npz file or a folder of .npy files is wanted",
                                                   "a table of separated values is wanted",
                                                   "a text is wanted",
                                                   "a tokenizer.json is wanted",
                                                   "an ONNX model is wanted"};
    clv__text advice = {0};
    if (wanted == CLV__WANT_WEIGHTS && k->program) {
        clv__text_add(&advice, "make a safetensors file of it: ");
        add_command(&advice, k->program, input->path);
        clv__text_add(&advice, " (pip install %s)", k->packages);
    } else {
        clv__text_add(&advice, "%s%s%s", wants[wanted], k->remedy[wanted] ? ": " : "",
                      k->remedy[wanted] ? k->remedy[wanted] : "");
    }
    clv__error_set(input->error, CLV_E_FORMAT, "'%s' is %s; %s", input->path, k->what,
                   clv__text_get(&advice));
    clv__text_reset(&advice);
    return CLV_E_FORMAT;
}

clv_status clv__foreign_check(const clv__input *input, clv__wanted wanted) {
    start s = {.n = input->bytes < LOOKED_AT ? (size_t)input->bytes : LOOKED_AT};
    CLV_TRY(clv__input_read(input, 0, s.bytes, s.n));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].is(&s)) return kinds[i].fits & 1u << wanted ? CLV_OK : refuse(input, &kinds[i], wanted);
    return CLV_OK;
}

const char *clv__foreign_name(const void *bytes, size_t n) {
    start s = {.n = n < LOOKED_AT ? n : LOOKED_AT};
    memcpy(s.bytes, bytes, s.n);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].is(&s)) return (kinds[i].fits & FITS_WORDS) == FITS_WORDS ? NULL : kinds[i].what;
    return NULL;
}
