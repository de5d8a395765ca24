// SPDX-License-Identifier: Apache-2.0
// Datasets, and the loader that makes batches of them on a thread of its own.
//
//     clv_dataset_fashion_mnist(runtime, NULL, CLV_SPLIT_TRAIN, NULL, &dataset);
//     clv_loader_create(runtime, dataset, &(clv_loader_config){.batch = 64, .shuffle = true, .seed = 1}, &loader);
//     while (clv_loader_next(loader, &batch) == CLV_OK) {
//         ... batch.samples, batch.targets, batch.n ...
//         clv_loader_release(loader, &batch);
//         if (batch.last) break;                  // the end of an epoch; the next one begins by itself
//     }
#ifndef CLEAVE_DATA_H
#define CLEAVE_DATA_H

#include "io.h"
#include "runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Samples (images, rows of numbers, sections of a text) with a target each: a class, several, or numbers. Does not change once
 *  made: any thread may read it. */
typedef struct clv_dataset clv_dataset;

typedef enum clv_split { CLV_SPLIT_TRAIN, CLV_SPLIT_TEST } clv_split;

/** All zero means the defaults. Strings and numbers are copied. */
typedef struct clv_dataset_config {
    int64_t limit; /**< keep the first samples only; 0: all; more than there are: all */
    /** What batches hold is (sample - mean) / std, where bytes count as 0..1. Both 0: what is usual for the
     * dataset. */
    float mean, std;
    int classes; /**< labels are 0 to classes - 1; 0: the dataset's own number, or the largest label + 1. Numbers have none */
    /** Labels with this value are ignored, and batches hold CLV_LABEL_IGNORED for them; NULL: labels that are
     *  CLV_LABEL_IGNORED */
    CLV_COUNT(1) const int32_t *ignore_index;
    bool only_bytes; /**< mean and std are for bytes (u8); floats stay as they are */
    int channels; /**< of samples [channels, ...], 1 or 3: there are as many means and stds, instead of mean and std */
    CLV_COUNT(channels) const float *means, *stds;
    /** Of images [..., height, width], in each epoch again, by torchvision's names: RandomCrop((height, width), padding=crop_padding), with
     *  0 around, before they are normalised; then RandomHorizontalFlip(p=flip), 0 to 1. Both 0: neither */
    int64_t crop_padding;
    double flip;
    CLV_RESERVED(2);
} clv_dataset_config;

/** A label that is ignored: in the loss of a training, in accuracy, in the counts of classes. As PyTorch's ignore_index. In a
 *  graph of your own clv_nn_label_weights makes weights for clv_cross_entropy_weighted of labels. */
enum { CLV_LABEL_IGNORED = -100 };

/**
 * Fashion-MNIST: 60,000 and 10,000 grey images of 28 x 28, 10 classes; normalised with mean 0.2860 and std
 * 0.3530.
 *
 * folder  with the four IDX files, gzipped or not, or with a folder fashion-mnist that has them; NULL: the
 *         variable CLEAVE_DATA_DIR, else the Debian package dataset-fashion-mnist's
 *         /usr/share/datasets/fashion-mnist
 * config  NULL means all defaults
 *
 * Errors  CLV_E_IO      a file is missing; the sentence says what to install;
 *         CLV_E_FORMAT  a file is damaged, or not of this dataset;  CLV_E_VALUE  the config
 * Source  Xiao, Rasul, Vollgraf 2017, arXiv:1708.07747
 */
CLV_API CLV_MUST_CHECK clv_status clv_dataset_fashion_mnist(clv_runtime *runtime,
                                                            CLV_OR_NULL const char *folder, clv_split split,
                                                            CLV_OR_NULL const clv_dataset_config *config,
                                                            clv_dataset **out);
/**
 * A dataset from arrays.
 *
 * images  [N, ...] f32 or u8; taken over when this succeeds (*images becomes zero), unless it is borrowed:
 *         then it must outlive the dataset
 * labels  [N] integers or bool: classes; or [N, ...] f32: numbers to be learnt, for a loss such as `mse`; copied
 * config  NULL means all defaults; without mean and std f32 samples stay as they are, and bytes become 0..1
 *
 * Errors  CLV_E_DTYPE;  CLV_E_SHAPE  no samples, ranks, different N, or other channels than config has;
 *         CLV_E_VALUE  a label out of range: which row, its value, the range
 */
CLV_API CLV_MUST_CHECK clv_status clv_dataset_from_arrays(clv_runtime *runtime, CLV_TAKEN clv_array *images,
                                                          const clv_array *labels,
                                                          CLV_OR_NULL const clv_dataset_config *config,
                                                          clv_dataset **out);
/** A dataset from two .npy files. Errors as clv_npy_read and clv_dataset_from_arrays, with the files' names; CLV_E_VALUE also: a value
 *  that is NaN or infinite, and where. Arrays of a program's own may have such: masks are made of them. */
CLV_API CLV_MUST_CHECK clv_status clv_dataset_npy(clv_runtime *runtime, const char *images_path,
                                                  const char *labels_path,
                                                  CLV_OR_NULL const clv_dataset_config *config,
                                                  clv_dataset **out);
// ---- several inputs and targets -------------------------------------------------------------------------------

/** A named array: one of a model's inputs, or one of its targets. Zero means the default. */
typedef struct clv_field {
    const char *name; /**< of the model's port; copied */
    clv_port_role role;
    /** [N, ...]: f32 are numbers; integers and bool are indices, and of a target classes; but u8 of an input are bytes, which become
     *  0..1 */
    clv_array *array;
    float mean, std; /**< of an input that is numbers or bytes, as in clv_dataset_config */
    int classes;     /**< indices and classes are 0 to classes - 1; 0: the largest + 1 */
    int channels;    /**< as in clv_dataset_config, with means and stds */
    CLV_COUNT(channels) const float *means, *stds;
    CLV_RESERVED(2);
} clv_field;

/**
 * A dataset of several inputs or several targets, for a model with clv_model.build_all: matched with its ports by name, in any order.
 *
 * archive  NULL: the fields' own arrays; else, as of clv_npz_read or clv_safetensors_read, what has the arrays of their names, and their own
 *          must be NULL. It must outlive the dataset
 * fields   n of them, of the same N. Their arrays are taken over when this succeeds (they become zero), unless one is borrowed: then it
 *          must outlive the dataset
 * config   limit and ignore_index alone; NULL means all defaults
 *
 * Errors  CLV_E_VALUE  no input, no target, a name that is missing or there twice, a class out of range; of an archive also a value that
 *         is NaN or infinite, and where;
 *         CLV_E_DTYPE;  CLV_E_SHAPE  no samples, or different N;  CLV_E_NOT_FOUND  an array that the archive does not have
 */
CLV_API CLV_MUST_CHECK clv_status clv_dataset_from_fields(clv_runtime *runtime,
                                                          CLV_OR_NULL CLV_KEPT const clv_archive *archive,
                                                          CLV_TAKEN CLV_COUNT(n) const clv_field *fields,
                                                          int n, CLV_OR_NULL const clv_dataset_config *config,
                                                          clv_dataset **out);

// ---- tables ---------------------------------------------------------------------------------------------------

/** What happens to rows with a missing value, an empty one or NA, N/A, NaN, null, NULL, None, <NA> or #N/A. */
typedef enum clv_missing {
    CLV_MISSING_REFUSE, /**< CLV_E_FORMAT, and where */
    CLV_MISSING_MEAN, /**< a number becomes its column's mean, words a category of their own; rows without a target are left out */
    CLV_MISSING_DROP /**< the row is left out */
} clv_missing;

/** Zero means the default. Strings are copied. */
typedef struct clv_table_config {
    const char *
        targets; /**< columns to be learnt, with commas: must be given; with a record, those of that or NULL */
    const char *ignore; /**< columns that are left out; NULL: none. All others are the samples */
    /** targets are classes, each value of the column one of them, in the order of the texts; so it is too where none is a number */
    bool classes;
    /** make the mean of each number, of samples and of targets, 0 and its deviation 1, by the rows from 0 to `begin`, or to `end`.
     *  What evaluation tells of targets, and clv_table_results_write, are in the table's units */
    bool standardize;
    double begin, end; /**< the part of the rows, 0.0 to 0.9; both 0: all of them */
    int64_t limit;     /**< keep the first samples only; 0: all */
    /** clv_dataset_info.table of what a model learnt, to test it: columns are found by their names, in any order, read and standardized as they
     *  were, and classes have the numbers that they had; `classes`, `standardize`, `words` and `missing` are not read. NULL: there is no such
     *  model */
    const char *record;
    const char
        *words; /**< columns whose numbers are categories: postal codes, say; with commas; NULL: none */
    clv_missing missing; /**< what becomes of rows in which a value is missing */
    bool decimal_comma;  /**< numbers are written 1.234,5 instead of 1,234.5 */
    CLV_RESERVED(5);
} clv_table_config;

/**
 * A dataset from a file of separated values: a row is a sample, [columns] f32, and its targets are numbers, [targets] f32, or one class.
 * The first line names the columns; values are separated by commas, semicolons, tabs or |, whichever it has, or as `sep=X` says before
 * it; those in double quotes may hold any text. UTF-8, or UTF-16 with its mark. A first column without a name is an index, and skipped.
 *
 * All its rows decide what a column holds. Numbers may have blanks around them, thousands separators (12,345.5 or 12 345.5; a column
 * with only values like 1,234 is refused, since that may be 1.234), one currency's sign, a percent sign in all rows (12 % is 12), and a
 * minus of either kind. A column of words gives a place for each word that the rows trained on have, 1 or 0; a word that is new in
 * later rows gives zeros. A first linear layer makes an embedding of that. All places together are 65,536 at most.
 *
 * Errors  CLV_E_IO; CLV_E_FORMAT  what is wrong, in which line: a value that is missing, or is no number where others are, dates, rows
 *         of other lengths; what the file is instead of a table;
 *         CLV_E_NOT_FOUND  no such column;  CLV_E_VALUE  the config, a class that `record` has not, words or classes that are another one
 *         in most rows;  as clv_table_rows_read
 * Source  RFC 4180
 */
CLV_API CLV_MUST_CHECK clv_status clv_dataset_table(clv_runtime *runtime, const char *path,
                                                    const clv_table_config *config, clv_dataset **out);

/** What became of a table's rows. */
typedef struct clv_table_report {
    int64_t rows;         /**< that were read */
    int64_t dropped;        /**< of the file: left out, because a value was missing */
    int64_t filled;       /**< values of these rows that were missing, and were filled in */
    int64_t unknown;      /**< words of these rows that the model does not know: zeros */
    int64_t columns;      /**< numbers of a sample */
    int64_t word_columns; /**< columns that have words */
    int64_t unknown_line;   /**< of the first of the unknown words, from 1; 0: there is none */
    int32_t unknown_column; /**< the same: which of the record's `columns` it is in */
    char unknown_word[12];  /**< the same: the word; of a longer one its first letters and ... */
    CLV_RESERVED(1);
} clv_table_report;

/*
 * What a model that learns a table must know to read more rows (clv_dataset_info.table): names of columns, what is learnt, classes, and how
 * columns were read and standardized. A text, JSON, to be kept with its weights (clv_weights_save_texts); the calls below take it.
 *
 *     {"columns":["a","b"],"targets":["side"],"ignored":["name"],"classes":["above","below"],"means":[0.5,3],"scales":[1,2]}
 *
 * Where there is such: "words":{"city":["Bonn","Ulm"]}, "missing":"mean" with "fills":[0.5,3] or "drop", "target_means" and
 * "target_scales", "units":{"price":"$"}, "thousands":["price"], "decimal_comma":true.
 */

/** Zero means the default. */
typedef struct clv_table_rows_config {
    const char *ignore; /**< further columns that are not looked at, with commas; NULL: none */
    bool decimal_comma; /**< as in clv_table_config; it is so too where the record says so */
    CLV_RESERVED(4);
} clv_table_rows_config;

/**
 * Read the rows of a file (as of clv_dataset_table) for a model that learnt a table: its columns by their names, in any order,
 * read and standardized as they were. Columns that were targets or ignored are skipped.
 *
 * record  of clv_dataset_info.table
 * config  NULL means all defaults
 * out     [rows, columns] f32, a row for each of the file; the caller's
 * report  what became of them; NULL: nobody asks
 *
 * Errors  as clv_dataset_table;  CLV_E_NOT_FOUND  a column is missing, CLV_E_VALUE  one is there that the model does not know: which;
 *         CLV_E_FORMAT  no record; a value is missing that the model has no mean for
 */
CLV_API CLV_MUST_CHECK clv_status clv_table_rows_read(clv_runtime *runtime, const char *path,
                                                      const char *record,
                                                      CLV_OR_NULL const clv_table_rows_config *config,
                                                      CLV_OUT clv_array *out,
                                                      CLV_OUT CLV_OR_NULL clv_table_report *report);
/**
 * Write such a model's results as a file of values with commas: a column for each target, in the table's units; or the class, and its
 * probability for each.
 *
 *     price            side,p(above),p(below)        p = softmax(results)
 *     12.5             above,0.75,0.25
 *
 * results  [n, targets] or [n, classes], as the model gave them; a row with a NaN has no class
 *
 * Errors   CLV_E_FORMAT  no record;  CLV_E_IO  cannot be written; the file that was there is untouched
 * Source   RFC 4180
 */
CLV_API CLV_MUST_CHECK clv_status clv_table_results_write(clv_runtime *runtime, const char *record,
                                                          CLV_ARRAY const float *results, int64_t n,
                                                          const char *path);

// ---- the least that a model should know -----------------------------------------------------------------------

/** The result of always predicting the commonest class, or the mean, without a look at any sample. */
typedef struct clv_baseline {
    int64_t targets, correct; /**< as in clv_metrics; 0 of numbers */
    double
        accuracy; /**< of classes, and of numbers that are all 0 or 1 (labels): correct / targets; NaN of other numbers */
    /** of classes the entropy of their frequencies (`cross_entropy`), of numbers their variance (`mse`): in the units of clv_metrics.loss,
     *  which are the table's, and deviations where several targets of it were standardized */
    double loss;
    CLV_RESERVED(4);
} clv_baseline;

/**
 * Look at a dataset's targets alone: a model that is no better has learnt nothing.
 *
 * target  which of them, from 0
 *
 * Errors  CLV_E_VALUE  no such target;  CLV_E_HOST_MEMORY
 */
CLV_API CLV_MUST_CHECK clv_status clv_dataset_baseline(clv_runtime *runtime, const clv_dataset *dataset,
                                                       int target, CLV_OUT clv_baseline *out);

/**
 * Weights that make up for classes of unequal sizes: counted labels / (classes * labels of the class); 1 for a class without any.
 *
 * target   which of the dataset's targets, from 0
 * classes  of the model; those of the dataset, or more
 * out      [classes], for clv_train_loss.class_weights
 *
 * Errors  CLV_E_VALUE  no such target, one of numbers, or one with more classes;  CLV_E_HOST_MEMORY
 * Source  sklearn.utils.class_weight.compute_class_weight("balanced")
 */
CLV_API CLV_MUST_CHECK clv_status clv_dataset_class_weights(clv_runtime *runtime, const clv_dataset *dataset,
                                                            int target, int64_t classes,
                                                            CLV_OUT CLV_COUNT(classes) float *out);

// ---- text -----------------------------------------------------------------------------------------------------

/** Which token stands for what in a text. Does not change once made: any thread may use it. */
typedef struct clv_vocabulary clv_vocabulary;

typedef enum clv_vocabulary_kind {
    CLV_VOCABULARY_BYTES,      /**< a token for each byte, 256 of them: for any file */
    CLV_VOCABULARY_CHARACTERS, /**< a token for each character that is in a text, in the order of their code points */
    CLV_VOCABULARY_TOKENIZER   /**< a tokenizer.json's */
} clv_vocabulary_kind;

/**
 * Make a vocabulary.
 *
 * text  `bytes` of it, copied. BYTES: NULL. CHARACTERS: UTF-8. TOKENIZER: JSON of at most 64 MiB, the form of Hugging Face's tokenizers:
 *       GPT-2's, RoBERTa's, Llama's, Qwen's, DeepSeek's, Phi's, BERT's, T5's and their like
 *
 * By a tokenizer a text becomes the tokens that its `encode(text, add_special_tokens=False)` gives: added tokens are found first, then
 * the text is normalized and parted into words, and the model makes tokens of each word.
 *
 * Notes   model: BPE, Unigram, WordPiece, WordLevel. normalizer: NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Replace, Prepend, Nmt,
 *         ByteLevel, BertNormalizer, Precompiled, Sequence. pre_tokenizer: ByteLevel, Split, Digits, Metaspace, Whitespace, WhitespaceSplit,
 *         Punctuation, BertPreTokenizer, CharDelimiterSplit, Sequence. decoder: ByteLevel, Metaspace, ByteFallback, WordPiece, BPEDecoder,
 *         Replace, Fuse, Strip, Sequence. post_processor, truncation and padding say what is put around a text, and are not read.
 * Errors  CLV_E_FORMAT       not UTF-8: which byte; no such JSON: what is wrong;  CLV_E_VALUE  an empty text, or no such kind
 *         CLV_E_UNSUPPORTED  a form that is not above, or dropout: its name; a build without PCRE2 (-DCLEAVE_TOKENIZERS=OFF); one
 *                            without utf8proc, of a form that needs what Unicode says of characters
 * Source  Sennrich, Haddow, Birch: Neural Machine Translation of Rare Words with Subword Units, 2016; Kudo: Subword Regularization, 2018,
 *         arXiv:1804.10959; Unicode Standard Annex 15
 */
CLV_API CLV_MUST_CHECK clv_status clv_vocabulary_create(clv_runtime *runtime, clv_vocabulary_kind kind,
                                                        CLV_OR_NULL CLV_COUNT(bytes) const char *text,
                                                        size_t bytes, clv_vocabulary **out);
/** NULL is fine. */
CLV_API void clv_vocabulary_destroy(clv_vocabulary *vocabulary);
/** How many tokens there are. */
CLV_API int clv_vocabulary_count(const clv_vocabulary *vocabulary);
/**
 * A text as tokens.
 *
 * out  [n], i32; the caller's (clv_array_reset)
 *
 * Errors  CLV_E_FORMAT  not UTF-8, or a tokenizer's expression that takes too long;  CLV_E_NOT_FOUND  a character that has no
 *         token: which, and where;  CLV_E_HOST_MEMORY
 */
CLV_API CLV_MUST_CHECK clv_status clv_vocabulary_encode(const clv_vocabulary *vocabulary,
                                                        CLV_COUNT(bytes) const char *text, size_t bytes,
                                                        CLV_OUT clv_array *out);
/**
 * Tokens as the text that they make together: what a tokenizer's `decode` gives. A token alone need not be text: several may make
 * one character, and a decoder may put blanks between words.
 *
 * skip_special  leave out the tokens that a tokenizer calls special
 * out           [bytes], u8: UTF-8, with U+FFFD for bytes that are no character; the caller's (clv_array_reset)
 *
 * Errors  CLV_E_VALUE  a token that there is not;  CLV_E_HOST_MEMORY
 */
CLV_API CLV_MUST_CHECK clv_status clv_vocabulary_decode(const clv_vocabulary *vocabulary,
                                                        CLV_COUNT(n) const int32_t *tokens, size_t n,
                                                        bool skip_special, CLV_OUT clv_array *out);
/** What a token stands for, and its bytes; no byte ends it. NULL and 0 where there is no such token. Borrowed. */
CLV_API CLV_OR_NULL const char *clv_vocabulary_token(const clv_vocabulary *vocabulary, int32_t token,
                                                     CLV_OUT size_t *bytes);

/** Zero means the default. */
typedef struct clv_text_config {
    const clv_vocabulary *vocabulary; /**< must be given; used while the dataset is made */
    int64_t context;                  /**< tokens of a sample; 0: 128 */
    int64_t stride;    /**< tokens from the beginning of a sample to that of the next; 0: the context */
    double begin, end; /**< the part of the text, 0.0 to 0.9; both 0: all of it */
    int64_t limit;     /**< keep the first samples only; 0: all */
    CLV_RESERVED(8);
} clv_text_config;

/**
 * A dataset from a text: samples are `context` tokens, i32, and the target of each token is the one that follows, so a target has
 * `context` classes.
 *
 * text  `bytes` of it; copied
 *
 * Errors  as clv_vocabulary_encode;  CLV_E_VALUE  the config, or a text that is shorter than a sample
 */
CLV_API CLV_MUST_CHECK clv_status clv_dataset_text(clv_runtime *runtime, CLV_COUNT(bytes) const char *text,
                                                   size_t bytes, const clv_text_config *config,
                                                   clv_dataset **out);
/** Read a whole file as bytes, u8. Errors: CLV_E_IO; CLV_E_FORMAT it is empty; CLV_E_HOST_MEMORY */
CLV_API CLV_MUST_CHECK clv_status clv_text_read(clv_runtime *runtime, const char *path,
                                                CLV_OUT clv_array *out);

// ---- folders of pictures --------------------------------------------------------------------------------------

/** Random transforms of each picture in each epoch: torchvision's, by their names. All zero: none. */
typedef struct clv_image_augment {
    bool crop;       /**< RandomResizedCrop(size, scale, ratio), instead of Resize and CenterCrop */
    double scale[2]; /**< parts of the picture's area; both 0: 0.08 and 1 */
    double ratio[2]; /**< of width to height; both 0: 3/4 and 4/3 */
    double flip;     /**< RandomHorizontalFlip(p): a probability, 0 to 1 */
    double brightness, contrast, saturation; /**< ColorJitter: each by a factor from 1 - x, or 0, to 1 + x */
    CLV_RESERVED(4);
} clv_image_augment;

/** All zero means the defaults. Strings are copied. */
typedef struct clv_image_folder_config {
    /** of what a model gets, [3, size, size]. 0: that of `like`; else of a folder of small pictures the median of their shorter sides,
     *  the next multiple of 32 from 64 on, where that is below 224; else 224 */
    int64_t size;
    int64_t resize; /**< the shorter side's size before the middle is cut out; 0: size / 0.875 */
    clv_image_augment augment;
    float mean[3], std[3]; /**< of each channel, where bytes count as 0..1; all 0: those of ImageNet */
    /** A table (a file as of clv_dataset_table): its first column has the names of files in the folder, each other column a 0 or a 1
     *  for each. Then pictures have several labels, [columns] f32, and folders are no classes. NULL: one class each */
    const char *labels;
    const clv_dataset *
        like; /**< classes, or the table's columns, are those of this folder of pictures; used while the dataset is made. NULL: its own */
    int64_t limit; /**< keep only this many pictures, evenly spread over all; 0: all */
    int workers;   /**< threads of a loader that decode; 0: as many as there are cores; 64 at most */
    /** Decode a JPEG at a half, a quarter or an eighth of its sides where no more is wanted of it: faster, and near to what the whole
     *  gives, not the same bits. As PIL's draft mode, which torchvision does not use */
    bool draft;
    /** A broken picture is an error, and so is whatever else a folder has beside its pictures (clv_image_folder_info);
     *  else it is skipped, and counted */
    bool strict;
    bool
        exif_transpose; /**< turn pictures as the orientation in their Exif data says, as PIL's ImageOps.exif_transpose */
    /** Classes, or the table's columns, and their order: those that a model was trained on (clv_weights_info.names). The folder may lack
     *  some of the classes, and the table may have its columns in any order. Instead of `like`; NULL: its own */
    CLV_COUNT(n_classes) const char *const *classes;
    int n_classes;
    CLV_RESERVED(6);
} clv_image_folder_config;

/**
 * A dataset from a folder of pictures (.jpg, .jpeg, .png, .webp, .bmp, .tif, .tiff, .gif), as torchvision's ImageFolder:
 * FOLDER/CLASS/PICTURE, classes in the order of their names. Its first bytes tell the format of a file, not its ending; of several pictures
 * in one the first is taken. They are decoded when a batch wants them, by threads of the loader; what is drawn for one depends on
 * the loader's seed, the epoch and the picture alone, never on the number of threads.
 *
 * A picture is broken if its header is, if it is cut off, or has more than 89,478,485 pixels. Such are left out when the dataset is
 * made. Damage within a picture shows only when it is decoded: then the next picture of the folder that can be decoded stands in its
 * place; with `strict` clv_loader_next fails.
 *
 * config  NULL means all defaults
 *
 * Errors  CLV_E_IO; CLV_E_FORMAT  no classes, a class without pictures, none that is whole, or with `strict` the first that is not;
 *         a table that has no 0 or 1 where one should be, or lacks a column of `like` or `classes`, or has another;
 *         CLV_E_NOT_FOUND  a class that `like`, or `classes`, does not have, or a file of the table that the folder does not have;
 *         CLV_E_UNSUPPORTED  Cleave was built without libjpeg and libpng, or without the library that a picture wants, which the
 *         sentence names;  CLV_E_VALUE  the config
 * Numerics  Resize, CenterCrop and Normalize give the bits of torchvision on PIL images
 */
CLV_API CLV_MUST_CHECK clv_status clv_dataset_image_folder(clv_runtime *runtime, const char *folder,
                                                           CLV_OR_NULL const clv_image_folder_config *config,
                                                           clv_dataset **out);
/**
 * A dataset of pictures alone, to run a model on: files, and all pictures of folders and of the folders in them, in the order of their
 * names. A sample's target is 0, without a meaning.
 *
 * paths   n of them; a file may have any name
 * config  as of clv_dataset_image_folder, without labels, classes and `like`
 *
 * A picture that is broken is left out when the dataset is made, or tells nothing later: clv_image_folder_file says so of its
 * sample, which is zeros. With `strict` either is an error.
 *
 * Errors  CLV_E_IO  no such file or folder;  CLV_E_FORMAT  no pictures, or none that is whole;  as clv_dataset_image_folder
 */
CLV_API CLV_MUST_CHECK clv_status clv_dataset_image_files(clv_runtime *runtime,
                                                          CLV_COUNT(n) const char *const *paths, int n,
                                                          CLV_OR_NULL const clv_image_folder_config *config,
                                                          clv_dataset **out);
/**
 * The file of sample i, from the folder on; of clv_dataset_image_files its path. NULL where there is none. Borrowed.
 *
 * broken  NULL, or becomes whether the sample was found to be broken when it was decoded
 */
CLV_API CLV_OR_NULL const char *clv_image_folder_file(const clv_dataset *dataset, int64_t i,
                                                      CLV_OUT CLV_OR_NULL bool *broken);

/** Problems found in a folder of pictures so far. Strings are borrowed. */
typedef struct clv_image_folder_info {
    int64_t broken;           /**< pictures that were found to be broken */
    const char *first_broken; /**< what is wrong with the first of them; NULL: there is none */
    /** other files and folders in a folder of classes, skipped when it was made a dataset; 0 with a table of labels, which names its
     *  files: all of it; files in folders of classes whose ending is no picture's; folders within these; files and folders whose names
     *  begin with a point; files beside the folders of classes */
    int64_t passed_over, endings, folders, hidden, loose;
    const char *
        first_passed_over; /**< the name of the first, from the folder on: of `endings` if there is one, of `hidden` last */
    CLV_RESERVED(4);
} clv_image_folder_info;

// ---- of every dataset -----------------------------------------------------------------------------------------

/** Its loaders must be gone. NULL is fine. */
CLV_API void clv_dataset_destroy(clv_dataset *dataset);

/** What a dataset is. Strings and arrays are borrowed from it. */
typedef struct clv_dataset_info {
    int64_t count;          /**< of samples */
    int classes;            /**< 0: targets are numbers */
    clv_dtype dtype;        /**< of samples: f32, or i32 of tokens */
    clv_shape
        sample; /**< of one: [1,28,28]; of named fields this and what is above is of the first input and the first target */
    clv_shape target;       /**< of one: [] of one class. Classes are i32, numbers f32 */
    int n_inputs, n_targets; /**< of each sample (clv_dataset_port_get) */
    CLV_ARRAY const char *const *
        number_names; /**< of a target's numbers, as many as it has: the columns of a table. NULL: there are none */
    /** of its classes, or its labels: of a folder of pictures, of the columns of its table, and of Fashion-MNIST. NULL: there are none */
    CLV_COUNT(n_class_names) const char *const *class_names;
    int n_class_names;
    const char *table;               /**< of a table: what its rows need to be, as above. NULL: it is none */
    clv_table_report table_report;   /**< of a table */
    clv_image_folder_info folder;    /**< of a folder of pictures */
    CLV_RESERVED(4);
} clv_dataset_info;
/** All zero of NULL. */
CLV_API clv_dataset_info clv_dataset_info_get(CLV_OR_NULL const clv_dataset *dataset);
/** The name of class i, or of label i; NULL where there is none. */
static inline const char *clv_dataset_class_name(const clv_dataset *dataset, int i) {
    const clv_dataset_info info = clv_dataset_info_get(dataset);
    return i >= 0 && i < info.n_class_names ? info.class_names[i] : NULL;
}
/** What a dataset has of each sample; of one without fields that is one input, `x`, and one target, `labels`. All zero past the end. Names
 *  are the dataset's. */
CLV_API clv_port clv_dataset_port_get(const clv_dataset *dataset, clv_port_role role, int index);
/** Write all of sample i: `to` has a pointer for each input, whose values are normalised, then one for each target; NULL: that is
 *  not wanted. */
CLV_API void clv_dataset_read(const clv_dataset *dataset, int64_t i, CLV_OUT CLV_ARRAY void *const *to);

// ---------------------------------------------------------------------------------------------------------------

/** Makes batches ahead, on threads of its own: one, or as many as a folder of pictures asks for. One thread uses a loader; several loaders may share a dataset. */
typedef struct clv_loader clv_loader;

typedef struct clv_loader_config {
    int64_t batch; /**< samples in a batch; must be given */
    bool shuffle;  /**< a new order each epoch, which depends on seed and epoch only */
    uint64_t seed;
    bool drop_last; /**< leave out the smaller batch at the end of an epoch */
    int buffers; /**< batches in memory at once, being made, ready, or held by the user; 0: 3; at least 2 */
    /** the first batch to give: what follows has the same bits as if all before it had been read. `index` is 0 to the number of batches of
     *  an epoch; the end of an epoch is the start of the next */
    int64_t epoch, index;
    /**
     * > 0: mix each sample with the one before it in the batch, the first with the last:
     *
     *     x[i] = lambda * x[i] + (1 - lambda) * x[i - 1], and the targets so      lambda from Beta(mixup, mixup)
     *
     * Each batch has its own lambda, drawn from seed, epoch and index. Classes become probabilities: targets of batches are
     * [n, classes] then, f32. As torchvision's mixup (references/classification, p = 1).
     * Source  Zhang, Cisse, Dauphin, Lopez-Paz 2017, arXiv:1710.09412
     */
    double mixup;
    int classes; /**< of such probabilities; 0: the dataset's */
    /** inputs that are bytes, of arrays of u8 and of pictures, stay so: [n, ...] u8, a quarter of the memory, and clv_nn_normalize in the
     *  graph makes numbers of them. With mixup they are normalised all the same */
    bool bytes;
    int rank, ranks; /**< of a training over ranks: give only this one's part of each batch; 0: all of it */
    /** of the batch, by rank, a sum of 1; used until clv_loader_destroy. NULL: equal */
    CLV_COUNT(ranks) const double *rank_shares;
    CLV_RESERVED(7);
} clv_loader_config;

/** One batch. The pointers are borrowed until clv_loader_release. */
typedef struct clv_batch {
    CLV_ARRAY const void *samples; /**< [n, sample shape], normalised, or bytes (clv_loader_config.bytes) */
    CLV_ARRAY const void *targets; /**< [n, target shape]; of mixed classes [n, classes], f32 */
    int64_t n;            /**< samples in it: the last may have fewer */
    int64_t epoch, index; /**< from 0; index within the epoch */
    bool last;            /**< of its epoch */
    int buffer;           /**< which of the loader's buffers holds it */
    CLV_ARRAY const void *const
        *each_input; /**< [n, ...] of each input, in the dataset's order: the first is `samples` */
    CLV_ARRAY const void *const *each_target; /**< and of each target: the first is `targets` */
    int64_t whole; /**< samples of the batch on all ranks; n, if there are none */
    CLV_RESERVED(3);
} clv_batch;

/**
 * Make a loader and start its thread.
 *
 * Errors  CLV_E_VALUE  batch < 1, buffers < 2, a negative position, drop_last leaves no batch, or mixup: below 0, of tokens, of targets
 *                      with several classes each, of more classes than `classes`;
 *         CLV_E_HOST_MEMORY
 */
CLV_API CLV_MUST_CHECK clv_status clv_loader_create(clv_runtime *runtime, CLV_KEPT const clv_dataset *dataset,
                                                    CLV_KEPT const clv_loader_config *config,
                                                    clv_loader **out);
/** Stop and join the threads. Batches not yet released are invalid. NULL is fine. */
CLV_API void clv_loader_destroy(clv_loader *loader);

/**
 * Wait for the next batch. Epochs follow one another without end.
 *
 * Errors  CLV_E_STATE  every buffer is held by the caller: release one first;
 *         CLV_E_FORMAT, CLV_E_IO, CLV_E_HOST_MEMORY  a sample cannot be read, as a broken picture; so it is each time after
 */
CLV_API CLV_MUST_CHECK clv_status clv_loader_next(clv_loader *loader, CLV_OUT clv_batch *out);
/** Give a batch's buffer back. In any order. The batch's numbers stay, its pointers become NULL. */
CLV_API void clv_loader_release(clv_loader *loader, CLV_INOUT clv_batch *batch);

typedef struct clv_loader_info {
    int64_t batches;      /**< in an epoch */
    int64_t epoch, index; /**< of the batch that clv_loader_next gives next: what a checkpoint keeps */
    size_t bytes;         /**< of memory that batches are made in */
    CLV_RESERVED(3);
} clv_loader_info;
CLV_API clv_loader_info clv_loader_info_get(const clv_loader *loader);

/**
 * The most probable classes of a sample, the most probable first, the first of equal ones before the others.
 *
 *     p = softmax(logits)
 *
 * which, p  room for `most` of each; p NULL: not wanted
 * result    how many there are: the smaller of `most` and `classes`; 0 where a logit is NaN or none is finite
 */
CLV_API int64_t clv_top_classes(CLV_COUNT(classes) const float *logits, int64_t classes, int64_t most,
                                CLV_OUT CLV_COUNT(most) int32_t *which,
                                CLV_OUT CLV_OR_NULL CLV_COUNT(most) double *p);

#ifdef __cplusplus
}
#endif
#endif
