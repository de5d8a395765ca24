// SPDX-License-Identifier: Apache-2.0
// A division as a placement text that a person can read, change and give again.
#ifndef CLV_PLACEMENT_DESCRIBE_H
#define CLV_PLACEMENT_DESCRIBE_H

#include "base/text.h"
#include "placement/divide.h"

/** Append `features.*=cpu:0,fc=cpu:1`: the stages in order, as few patterns as say it. `text` may end up
 *  failed. */
void clv__division_describe(const clv__division *division, const clv__layers *layers,
                            clv_device *const *devices, clv__text *text);

#endif
