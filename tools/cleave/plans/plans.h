// SPDX-License-Identifier: Apache-2.0
// Placement, plans and profiles, as text and as JSON.
#ifndef CLEAVE_CLI_PLANS_H
#define CLEAVE_CLI_PLANS_H

#include "cli.h"

// ---- placement.c: layers and batches on several devices ---------------------------------------------------

enum { CLI_MAX_REPLICAS = 16 };

/** What --place, --devices, --transfers, --replicas and --shares ask for. */
typedef struct cli_placement {
    clv_placement placement; // points into this structure
    char text[1024];         // names of devices; or --place behind --device
    char replicas[1024];     // names of them
    const char *devices[CLI_MAX_REPLICAS];
    double shares[CLI_MAX_REPLICAS];
} cli_placement;

/** Read the options, that one too; prints and returns EXIT_USAGE if they make no sense. */
int cli_read_placement(const cli_args *args, cli_placement *out);
/** Do the devices and layers it names exist? Prints and returns EXIT_USAGE if not. Takes no device memory. */
int cli_check_place(clv_runtime *runtime, const clv_model *model, const clv_placement *placement);
/** Are there parameters that --freeze names, and others? Prints and returns EXIT_USAGE if not. */
int cli_check_freeze(clv_runtime *runtime, const clv_model *model, const char *freeze);
/** What --place auto and the like chose, as a note on stderr that can be pasted, and as JSON. NULL: nothing,
 *  null. */
void cli_print_place(const cli_args *args, const clv_place_choice *choice);
json_t *cli_place_json(const clv_place_choice *choice);
/** The part of each replica, as JSON and as lines on stdout; no replicas: an empty object, nothing. */
json_t *cli_shares_json(const clv_placement *placement, const double *shares);
void cli_shares_print(const clv_placement *placement, const double *shares);
/** The memory of each device of a plan that has its session for itself, as JSON and as tables. */
json_t *cli_plan_memory_json(clv_plan *plan);
void cli_plan_memory_tables(FILE *out, clv_plan *plan);
/** Tell on stderr which devices of --place have nothing to do, because the last match wins, and which of
 *  --budget have no part. */
void cli_tell_idle(const cli_session *session, const clv_plan *plan);

// ---- precision.c: --precision -----------------------------------------------------------------------------

clv_precision cli_precision(const cli_args *args);
/** What mixed precision saves; `in_f32` is the same plan without it, NULL without --precision. */
json_t *cli_precision_json(const cli_args *args, clv_plan *plan, clv_plan *plain);
/** What mixed precision and micro-batches save, or cost, beside the same plan without them, as text and as
 *  JSON; `plain` NULL: nothing, null. only_more: a note, and only if they take more. */
json_t *cli_without_json(const clv_plan *plan, clv_plan *plain);
void cli_without_print(FILE *out, const cli_args *args, const clv_plan *plan, clv_plan *plain,
                       bool only_more);

// ---- over_ranks.c: a training of several processes --------------------------------------------------------

/** What a rank sends in a step and holds; least: seconds that it computes by its maker's figures, 0: not
 *  known. */
typedef struct cli_rank_planned {
    int64_t sent;
    uint64_t optimizer, peak;
    double least;
} cli_rank_planned;
typedef struct cli_ranks_planned {
    int n;
    cli_rank_planned *rank, alone; // alone: one process
    int64_t most;                  // bytes that one of them sends
    double link;                   // bytes a second; 0: not given
    bool layered;                  // layers are on devices of several ranks, and each sees whole batches
    double step, enough; // seconds of a step over it; the link that makes it as fast as one, 0: none
} cli_ranks_planned;
/** --link in bytes a second, 0 without. Prints what is wrong. */
int cli_read_link(const cli_args *args, double *bytes);
/** From here on devices of --ranks have names, such as 1:gpu:0, and are as those here. Prints what fails. */
int cli_ranks_name(const cli_session *session);
/** Plan a training for each of --ranks; end it in any case. Prints what fails. */
int cli_ranks_plan(cli_session *session, clv_train_config config, clv_plan_config how, int64_t batch,
                   cli_ranks_planned *out);
json_t *cli_ranks_json(const cli_ranks_planned *planned);
void cli_ranks_print(const cli_ranks_planned *planned);
void cli_ranks_planned_end(cli_ranks_planned *planned);

// ---- parts.c: what is larger than a device's largest allocation -------------------------------------------

json_t *cli_parts_json(const clv_plan *plan);
/** A line; nothing where all is done whole. */
void cli_parts_print(FILE *out, const clv_plan *plan);

// ---- recomputed.c: what a plan drops and computes again ---------------------------------------------------

json_t *cli_recomputed_json(const clv_plan *plan);
/** A table of it. Nothing if nothing is, unless it was asked for. */
void cli_recomputed_print(FILE *out, const cli_args *args, const clv_plan *plan);

// ---- profile.c: --profile and --trace ---------------------------------------------------------------------

typedef struct cli_peak {
    clv_device *device;
    clv_bench_peak peak; // zeros: not known
    bool again;          // it was beaten and measured once more
} cli_peak;

/** What is measured beside a command's work. All zero: nothing is. */
typedef struct cli_profile {
    cli_session *session;
    clv_profile *profile; // NULL: neither option was given
    cli_peak peaks[CLI_MAX_REPLICAS];
    int n_peaks;
} cli_profile;

/** Profile the steps of a session from now on, if an option asks for it. device: the i-th that takes part,
 *  NULL past the last. Prints what fails. End it after the session's runs. */
int cli_profile_begin(cli_session *session, clv_session *of, clv_device *(*device)(const void *owner, int i),
                      const void *owner, cli_profile *out);
/** A predictor of a model `sized` is made: profile it so, tell where its layers are, load its weights. Prints
 *  what fails. */
int cli_profile_predictor(cli_session *session, clv_predictor *predictor, const clv_model *sized,
                          cli_profile *out);
/** What it says of the run with the most steps; JSON null without --profile. */
void cli_profile_print(FILE *out, const cli_profile *profile);
json_t *cli_profile_json(const cli_profile *profile);
/** Write the trace, if one is wanted. Prints what fails. */
int cli_profile_trace(const cli_profile *profile);
void cli_profile_end(cli_profile *profile);

/** Of a plan: how little time it could take at its devices' peaks, which are measured unless they are
 *  known. */
int cli_profile_plan(cli_session *session, const clv_plan *plan, cli_profile *out);
void cli_profile_plan_print(FILE *out, const cli_profile *profile, const clv_plan *plan);
json_t *cli_profile_plan_json(const cli_profile *profile, const clv_plan *plan);

#endif
