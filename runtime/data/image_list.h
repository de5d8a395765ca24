// SPDX-License-Identifier: Apache-2.0
// Which pictures a folder has, and what is to be learnt of each; nothing is decoded here.
#ifndef CLV_DATA_IMAGE_LIST_H
#define CLV_DATA_IMAGE_LIST_H

#include "base/error.h"
#include "base/memory.h"
#include "cleave/data.h"

/** Files of pictures and their targets, in order. All zero is none. */
typedef struct clv__image_list {
    clv__arena arena;   // all names
    char *folder;       // "" where files are whole paths
    const char **files; // [count]: from the folder on
    size_t count, files_room;
    int32_t *labels; // [count]: classes; NULL: there are several labels each
    size_t labels_room;
    float *targets; // [count, n_classes]: 0 or 1; NULL: there is one class each
    const char **classes;
    size_t n_classes, classes_room;
    clv_image_folder_info rest; // what is beside the pictures of classes
    int missed;                 // how much its first is missed, where there is one
} clv__image_list;

/** Names that are known: of another folder, or of weights. */
typedef struct clv__known_names {
    const char *const *names;
    size_t n;
    const char *whose; // a folder; NULL: the model's
} clv__known_names;

/** FOLDER/CLASS/PICTURE. `known` NULL, or the classes there may be, in their order. `strict`: whatever else is there is an
 *  error. */
clv_status clv__image_list_classes(clv__error *error, const char *folder, const clv__known_names *known,
                                   bool strict, clv__image_list *out);
/** How much was passed over in all. */
int64_t clv__image_list_rest(const clv__image_list *list);
/** FOLDER/PICTURE, as a table names them. `known` NULL, or the columns that there must be, in any order; labels are in the order of
 *  `known`. */
clv_status clv__image_list_table(clv__error *error, const char *folder, const char *table,
                                 const clv__known_names *known, clv__image_list *out);
/** Files, and all pictures of folders and of the folders in them; names are whole paths, and there are no targets. */
clv_status clv__image_list_files(clv__error *error, const char *const *paths, size_t n, clv__image_list *out);
/** Keep picture `from` in the place of `to`, `to` <= `from`. */
void clv__image_list_move(clv__image_list *list, size_t from, size_t to);
void clv__image_list_reset(clv__image_list *list);

#endif
