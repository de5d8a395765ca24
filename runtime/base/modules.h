// SPDX-License-Identifier: Apache-2.0
// Names of tensors and of the modules that they lie in (`layer1.0.conv1.weight` lies in `layer1`, `layer1.0`
// and `layer1.0.conv1`), and lists of patterns over them (`conv1,layer1.*`).
#ifndef CLV_BASE_MODULES_H
#define CLV_BASE_MODULES_H

#include <stdbool.h>

#include "base/nearest.h"

enum { CLV__PATTERN_BYTES = 256 };

/** Take the next pattern from a list with commas, without blanks around it; false at its end. Begin with the
 *  list in *rest. */
bool clv__patterns_take(const char **rest, char pattern[CLV__PATTERN_BYTES]);

/** Does the pattern (`*` any text, `?` one character) match the name, or a module that it lies in? */
bool clv__pattern_covers(const char *pattern, const char *name);
/** Does one of the list? NULL is an empty list. */
bool clv__patterns_cover(const char *patterns, const char *name);

/** Offer a name and the modules that it lies in. */
void clv__nearest_offer_modules(clv__nearest *nearest, const char *name);

#endif
