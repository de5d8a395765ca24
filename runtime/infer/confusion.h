// SPDX-License-Identifier: Apache-2.0
// Counts of classes in an evaluation: confusion.c.
#ifndef CLV_INFER_CONFUSION_H
#define CLV_INFER_CONFUSION_H

#include "base/error.h"
#include "cleave/train.h"

/** Which of the model's targets it counts. */
int clv__confusion_target(const clv_confusion *confusion);
/** Is it of such a model, and are targets told right or wrong? */
clv_status clv__confusion_check(const clv_confusion *confusion, const clv_model *model, bool tells_right,
                                clv__error *error);

#endif
