// SPDX-License-Identifier: Apache-2.0
// Event files for TensorBoard: what a training tells, as scalars and histograms. events.c says how they are
// written.
#ifndef CLEAVE_EVENTS_H
#define CLEAVE_EVENTS_H

#include "watching/watch.h"

/** Make an event file of its own in the folder, which is made if it is not there; path NULL: none, and
 *  everything below does nothing. Prints and returns EXIT_FAILED if that cannot be. */
int events_open(events_file *events, const char *folder, bool histograms);
/** A step: loss, learning rate, rate, each device's memory and load. The first one says where the training
 *  goes on, and TensorBoard drops what older files of the folder tell of later steps. False if it could not
 *  be written; it was told. */
bool events_step(events_file *events, const watch_moment *moment);
/** An epoch: its mean loss, test loss and accuracy; and of each parameter of the session a histogram, if they
 *  were asked for. */
bool events_epoch(events_file *events, const watch_moment *moment, const clv_train_epoch *epoch,
                  clv_session *session);
/** Prints what fails; the exit code. */
int events_close(events_file *events);

#endif
