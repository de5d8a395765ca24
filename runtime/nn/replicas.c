// SPDX-License-Identifier: Apache-2.0
// Which devices and shares are good for data parallel, and the rows that come of them.
#include "nn/replicas.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "cleave/device.h"
#include "graph/op.h"

_Static_assert((int)CLV__MOST_REPLICAS <= (int)CLV__MAX_IN, "one concat joins what the replicas computed");

static clv_status check_shares(const char *const *devices, const double *shares, int n, clv__error *error) {
    double sum = 0;
    for (int i = 0; i < n; i++) {
        if (!(shares[i] > 0))
            CLV_FAIL(error, CLV_E_VALUE, "data parallel: the share of %s is %g, it must be above 0",
                     devices[i], shares[i]);
        sum += shares[i];
    }
    if (!(fabs(sum - 1) <= 1e-6))
        CLV_FAIL(error, CLV_E_VALUE, "data parallel: the shares sum to %g, they must sum to 1", sum);
    return CLV_OK;
}

clv_status clv__replicas_check(clv_runtime *runtime, const char *const *devices, const double *shares, int n,
                               clv__error *error) {
    if (n < 1 || n > CLV__MOST_REPLICAS)
        CLV_FAIL(error, CLV_E_VALUE, "data parallel: %d devices, from 1 to %d are possible", n,
                 CLV__MOST_REPLICAS);
    clv_device *found[CLV__MOST_REPLICAS];
    for (int i = 0; i < n; i++) {
        clv_status status = clv_device_find(runtime, devices[i], &found[i]); // NULL if it is not there
        for (int j = 0; j < i && status == CLV_OK; j++) {
            if (found[i] != found[j]) continue;
            const char *name = clv_device_info_get(found[i])->name;
            if (strcmp(devices[i], devices[j]) == 0)
                CLV_FAIL(error, CLV_E_VALUE, "data parallel: %s is named twice", name);
            CLV_FAIL(error, CLV_E_VALUE, "data parallel: %s is named twice, as '%s' and as '%s'", name,
                     devices[j], devices[i]);
        }
    }
    return shares ? check_shares(devices, shares, n, error) : CLV_OK;
}

void clv__replica_rows(int64_t batch, const double *shares, int n, int64_t *rows) {
    double rest[CLV__MOST_REPLICAS];
    int64_t left = batch;
    for (int i = 0; i < n; i++) {
        double exact = (double)batch * (shares ? shares[i] : 1.0 / n);
        rows[i] = (int64_t)exact;
        if (rows[i] > left) rows[i] = left;
        rest[i] = exact - (double)rows[i];
        left -= rows[i];
    }
    for (; left > 0; left--) {
        int most = 0;
        for (int i = 1; i < n; i++)
            if (rest[i] > rest[most] + 1e-9) most = i;
        rows[most]++;
        rest[most] -= 1;
    }
    int most = 0;
    for (int i = 1; i < n; i++)
        if (rows[i] > rows[most]) most = i;
    if (rows[0] == 0 && most > 0) rows[most]--, rows[0]++;
}
