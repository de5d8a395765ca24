// SPDX-License-Identifier: Apache-2.0
// Which pictures a folder has, and what is to be learnt of each; nothing is decoded here.
#ifndef CLV_DATA_IMAGE_LIST_H
#define CLV_DATA_IMAGE_LIST_H

#include "base/error.h"
#include "base/memory.h"
#include "cleave/data.h"

/** Files of pictures and their targets, in order. All zero is none. */
typedef struct clv__image_list {
    clv__arena arena; // all names
    char *folder;
    const char **files; // [count]: from the folder on
    size_t count, files_room;
    int32_t *labels; // [count]: classes; NULL: there are several labels each
    size_t labels_room;
    float *targets; // [count, n_classes]: 0 or 1; NULL: there is one class each
    const char **classes;
    size_t n_classes, classes_room;
    clv_image_folder_rest rest; // what is beside the pictures of classes
    const char *first_rest;     // the first of it; NULL: there is none
} clv__image_list;

/** FOLDER/CLASS/PICTURE. `like` NULL, or whose classes these are. `strict`: whatever else is there is an error. */
clv_status clv__image_list_classes(clv__error *error, const char *folder, const clv__image_list *like,
                                   bool strict, clv__image_list *out);
/** How much was passed over in all. */
int64_t clv__image_list_rest(const clv__image_list *list);
/** FOLDER/PICTURE, as a table names them. `like` NULL, or whose columns these must be. */
clv_status clv__image_list_table(clv__error *error, const char *folder, const char *table,
                                 const clv__image_list *like, clv__image_list *out);
/** Keep picture `from` in the place of `to`, `to` <= `from`. */
void clv__image_list_move(clv__image_list *list, size_t from, size_t to);
void clv__image_list_reset(clv__image_list *list);

#endif
