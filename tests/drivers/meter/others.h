// SPDX-License-Identifier: Apache-2.0
// Variants that no plan of the meter's models chooses: a node for each of them.
#ifndef CLV_METER_OTHERS_H
#define CLV_METER_OTHERS_H

#include "plan/plan.h"

/** Models whose training steps are metered, at this batch. NULL ends them. */
extern const char *const meter_models[];
enum { METER_BATCH = 4 };

/** Of each op in a model's plan each variant that the card can do there and that was not chosen, on the heaviest node. */
void others_of_plan(const clv_plan *plan, const char *model);
/** Each other variant that the card can get, on the best node there is: of the same models in inference and in mixed precision, of
 *  other models, or of a sample. FOLDER/uses.txt gets what all null cards with lanes can get. */
void others_complete(clv_runtime *runtime, clv_device *card, const char *folder);

#endif
