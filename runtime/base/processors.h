// SPDX-License-Identifier: Apache-2.0
// How many threads can work side by side.
#ifndef CLV_BASE_PROCESSORS_H
#define CLV_BASE_PROCESSORS_H

/** Processors that this process may use, which can be fewer than there are (taskset, a container); at least
 *  1. */
int clv__processors(void);

#endif
