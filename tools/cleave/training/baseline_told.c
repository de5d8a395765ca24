// SPDX-License-Identifier: Apache-2.0
// Is a model better than one that looks at nothing, and always tells the commonest class or the mean? Said
// where it is not.
#include "training/training.h"

#include <math.h>
#include <string.h>

/** What a target's loss is in that of the whole model: its kind, and a factor, which also makes deviations of
 *  the units of numbers. */
static clv_train_loss loss_of(const clv_port *port, const clv_train_loss *losses, int n_losses,
                              const clv_loss *loss) {
    clv_train_loss found = {.weight = 1};
    for (int i = 0; i < n_losses; i++)
        if (port->name && !strcmp(losses[i].target, port->name)) found = losses[i];
    if (!found.loss) found.loss = loss ? loss : clv_loss_find(port->classes ? "cross_entropy" : "mse");
    if (!(found.weight > 0)) found.weight = 1;
    return found;
}

/** Accuracy says it where there is one; else the loss, if the mean has the least there is. */
static void judge(cli_least *least, const clv_loss *loss) {
    const bool right = !isnan(least->accuracy) && !isnan(least->baseline.accuracy);
    const bool usual = loss == clv_loss_find("mse") || loss == clv_loss_find("cross_entropy");
    least->known = right || (usual && isfinite(least->loss));
    least->no_better = right ? least->accuracy <= least->baseline.accuracy
                             : least->known && least->loss >= least->baseline.loss;
}

cli_least cli_least_of(clv_runtime *runtime, const cli_source *source, const clv_dataset *tested,
                       const clv_metrics *metrics, const clv_dataset *trained, double train_loss,
                       const clv_loss *loss) {
    const cli_fields *fields = &source->fields;
    const clv_dataset *dataset = tested ? tested : trained;
    cli_least least = {.accuracy = NAN, .loss = NAN, .are_tokens = cli_data_is(source->args, "text")};
    const int n = clv_dataset_info_get(dataset).n_targets;
    for (int i = 0; i < n && !least.no_better && (tested || n == 1); i++) {
        const clv_port port = clv_dataset_port_get(dataset, CLV_PORT_TARGET, i);
        const clv_target_metrics *told = NULL;
        for (int k = 0; tested && k < metrics->n_each; k++)
            if (n == 1 || !strcmp(metrics->each[k].name, port.name)) told = &metrics->each[k];
        least.accuracy = told ? told->accuracy : (double)NAN;
        const clv_train_loss of = loss_of(&port, fields->trained, fields->n_targets, loss);
        least.loss = told ? told->loss : tested ? (double)NAN : train_loss / of.weight;
        if (n > 1) snprintf(least.target, sizeof least.target, "%s", port.name);
        if (clv_dataset_baseline(runtime, dataset, i, &least.baseline) != CLV_OK)
            return (cli_least){.known = false};
        const bool scaled = fields->scale[i] > 0 || clv_dataset_info_get(dataset).table_report.rows;
        least.are_large = !scaled && !port.classes && least.baseline.loss > 100;
        least.units = fields->scale[i] > 0 ? cli_loss_units(source) : "";
        judge(&least, of.loss);
        least.baseline.loss *= of.weight; // as the loss is told
        if (!*least.sorted && (port.classes || least.no_better))
            cli_tell_sorted(source->args, tested, trained, i, least.sorted, sizeof least.sorted);
    }
    return least;
}

void cli_least_say(FILE *out, const cli_least *least) {
    const char *of = *least->target ? "of " : "", *colon = *least->target ? ": " : "";
    if (!least->known) return;
    if (*least->sorted) screen_say(out, "%s%s%s%s", of, least->target, colon, least->sorted);
    if (!least->no_better || *least->sorted) return;
    if (!isnan(least->accuracy) && !isnan(least->baseline.accuracy))
        screen_say(
            out,
            "%s%s%sno better than always predicting the commonest %s, which is right in %.4f: the model has "
            "not learnt to tell %s apart; more --epochs (or fewer, where the train loss still fell), "
            "another --lr or other data may help",
            of, least->target, colon, least->are_tokens ? "token" : "class", least->baseline.accuracy,
            least->are_tokens ? "tokens" : "classes");
    else
        screen_say(out,
                   "%s%s%sno better than always predicting %s, whose loss is %s%s: the model has learnt "
                   "nothing of the samples; %smore --epochs (or fewer, where the train loss still fell), "
                   "another --lr or other data may "
                   "help",
                   of, least->target, colon,
                   !least->baseline.targets ? "the mean"
                   : least->are_tokens      ? "the commonest token"
                                            : "the commonest class",
                   cli_figure(least->baseline.loss), least->units,
                   least->are_large ? "standardize targets as large as these, (y - y.mean()) / y.std(); "
                                    : "");
}

json_t *cli_least_json(const cli_least *least) {
    if (!least->known) return json_null();
    return json_pack("{s:o, s:o, s:b}", "accuracy", cli_real(least->baseline.accuracy), "loss",
                     cli_real(least->baseline.loss), "no_better", least->no_better);
}
