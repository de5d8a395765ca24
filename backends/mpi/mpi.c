// SPDX-License-Identifier: Apache-2.0
// Messages between ranks by MPI: Open MPI, MPICH and the like. A library of its own (libcleave_mpi.so), which
// links MPI and nothing of Cleave. MPI is asked for one caller at a time, so a lock is held around each call,
// and none waits. MPI begins when all processes have come, and does not say that one will not: a thread waits
// there, so that who asked for it need not, and ends MPI, as the thread must that began it.
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device/transport.h"

_Static_assert(sizeof(MPI_Request) <= sizeof(void *), "a request is kept in a message's handle");

/** There is one MPI in a process. */
typedef struct engine {
    pthread_mutex_t lock; // for what follows, and around each call
    pthread_cond_t changed;
    pthread_t thread;
    enum { UNUSED, BEGINS, BEGUN, FAILED, ENDS } state;
    MPI_Comm comm;
    clv__transport_place place;
    char why[CLV__TRANSPORT_WHY];
} engine;

static int failed(int code, const char *call, char *why) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    snprintf(why, CLV__TRANSPORT_WHY, "%s: %.180s", call, text);
    return 1;
}

static void keep(clv__message *message, MPI_Request request) {
    message->handle = NULL;
    memcpy(&message->handle, &request, sizeof request);
    message->active = true;
}

static void mpi_close(void *self, bool orderly) {
    engine *mpi = self;
    if (!orderly) return; // who waits for nobody does not finalize either: MPI ends with the process
    pthread_mutex_lock(&mpi->lock);
    mpi->state = ENDS;
    pthread_cond_broadcast(&mpi->changed);
    pthread_mutex_unlock(&mpi->lock);
    pthread_join(mpi->thread, NULL);
}

static int join_all(engine *mpi) {
    int begun = 0, given = 0, code;
    MPI_Comm machine;
    clv__transport_place *place = &mpi->place;
    MPI_Initialized(&begun);
    if (begun) {
        snprintf(mpi->why, sizeof mpi->why, "this process has initialized MPI already");
        return 1;
    }
    if ((code = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &given)) != MPI_SUCCESS)
        return failed(code, "MPI_Init_thread", mpi->why);
    if (given < MPI_THREAD_SERIALIZED) {
        snprintf(mpi->why, sizeof mpi->why, "this MPI cannot be called from several threads");
        MPI_Finalize();
        return 1;
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &mpi->comm);
    MPI_Comm_set_errhandler(mpi->comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(mpi->comm, &place->rank);
    MPI_Comm_size(mpi->comm, &place->size);
    MPI_Comm_split_type(mpi->comm, MPI_COMM_TYPE_SHARED, place->rank, MPI_INFO_NULL, &machine);
    MPI_Comm_rank(machine, &place->local);
    MPI_Comm_free(&machine);
    const char *recovery = getenv("OMPI_MCA_orte_enable_recovery"); // of Open MPI's mpirun --enable-recovery
    place->survives = recovery && strcmp(recovery, "1") == 0;
    return 0;
}

static void *run_thread(void *user) {
    engine *mpi = user;
    const bool joined = join_all(mpi) == 0;
    pthread_mutex_lock(&mpi->lock);
    mpi->state = joined ? BEGUN : FAILED;
    pthread_cond_broadcast(&mpi->changed);
    while (mpi->state == BEGUN) pthread_cond_wait(&mpi->changed, &mpi->lock);
    pthread_mutex_unlock(&mpi->lock);
    if (joined) {
        MPI_Comm_free(&mpi->comm);
        MPI_Finalize();
    }
    return NULL;
}

/** Until all have come, or it takes too long. The lock is held. */
static int await_all(engine *mpi, double patience, char why[CLV__TRANSPORT_WHY]) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)patience;
    int late = 0;
    while (mpi->state == BEGINS && !late) late = pthread_cond_timedwait(&mpi->changed, &mpi->lock, &until);
    if (mpi->state == BEGUN) return 0;
    if (mpi->state == FAILED)
        snprintf(why, CLV__TRANSPORT_WHY, "%s", mpi->why);
    else
        snprintf(why, CLV__TRANSPORT_WHY, "not all processes came within %d seconds: one has ended, or hangs",
                 (int)patience);
    return 1;
}

static int mpi_open(void *what, double patience, clv__transport_place *place, void **self,
                    char why[CLV__TRANSPORT_WHY]) {
    static engine only = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER}; // as MPI's
    (void)what;
    pthread_mutex_lock(&only.lock);
    int code = 1;
    if (only.state != UNUSED)
        snprintf(why, CLV__TRANSPORT_WHY, "MPI was begun in this process before");
    else if (pthread_create(&only.thread, NULL, run_thread, &only) != 0)
        snprintf(why, CLV__TRANSPORT_WHY, "no thread could be started for MPI");
    else {
        only.state = BEGINS;
        code = await_all(&only, patience, why);
    }
    if (code == 0) {
        *place = only.place;
        *self = &only;
    }
    pthread_mutex_unlock(&only.lock);
    return code;
}

/** MPI counts elements by an int: larger messages count in words, which all of ours are made of. */
static int type_of(size_t bytes, MPI_Datatype *type, int *count) {
    *type = bytes > INT32_MAX && bytes % sizeof(float) == 0 ? MPI_FLOAT : MPI_BYTE;
    const size_t n = *type == MPI_FLOAT ? bytes / sizeof(float) : bytes;
    *count = (int)n;
    return n <= INT32_MAX;
}

/** Begin a message to `peer`, or one that comes from there into `data`. */
static int begin(engine *mpi, bool receives, int peer, int tag, void *data, size_t bytes, clv__message *out,
                 char why[CLV__TRANSPORT_WHY]) {
    MPI_Datatype type;
    MPI_Request request;
    int count;
    if (!type_of(bytes, &type, &count)) {
        snprintf(why, CLV__TRANSPORT_WHY, "a message of %zu bytes is too large", bytes);
        return 1;
    }
    pthread_mutex_lock(&mpi->lock);
    const int code = receives ? MPI_Irecv(data, count, type, peer, tag, mpi->comm, &request)
                              : MPI_Isend(data, count, type, peer, tag, mpi->comm, &request);
    pthread_mutex_unlock(&mpi->lock);
    if (code != MPI_SUCCESS) return failed(code, receives ? "MPI_Irecv" : "MPI_Isend", why);
    *out = (clv__message){.bytes = bytes, .receives = receives, .number = receives && type == MPI_FLOAT};
    keep(out, request);
    return 0;
}

static int mpi_send(void *self, int to, int tag, const void *data, size_t bytes, clv__message *out,
                    char why[CLV__TRANSPORT_WHY]) {
    return begin(self, false, to, tag, (void *)data, bytes, out, why);
}

static int mpi_receive(void *self, int from, int tag, void *data, size_t bytes, clv__message *out,
                       char why[CLV__TRANSPORT_WHY]) {
    return begin(self, true, from, tag, data, bytes, out, why);
}

static int mpi_test(void *self, clv__message *message, bool *over, char why[CLV__TRANSPORT_WHY]) {
    engine *mpi = self;
    MPI_Request request;
    MPI_Status status;
    int done = 0, count = 0;
    memcpy(&request, &message->handle, sizeof request);
    pthread_mutex_lock(&mpi->lock);
    const int code = MPI_Test(&request, &done, &status);
    if (code == MPI_SUCCESS && done && message->receives)
        MPI_Get_count(&status, message->number ? MPI_FLOAT : MPI_BYTE, &count);
    pthread_mutex_unlock(&mpi->lock);
    if (code != MPI_SUCCESS) return failed(code, "MPI_Test", why);
    keep(message, request);
    message->active = !done;
    *over = done;
    if (done && message->receives)
        message->bytes = (size_t)count * (message->number ? sizeof(float) : sizeof(char));
    return 0;
}

static void mpi_forget(void *self, clv__message *message) {
    engine *mpi = self;
    MPI_Request request;
    int done = 0;
    memcpy(&request, &message->handle, sizeof request);
    pthread_mutex_lock(&mpi->lock);
    MPI_Cancel(&request);
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    pthread_mutex_unlock(&mpi->lock);
    message->active = !done;
}

__attribute__((visibility("default"))) extern const clv__transport clv_transport;
const clv__transport clv_transport = {.version = CLV__TRANSPORT_VERSION,
                                      .name = "mpi",
                                      .open = mpi_open,
                                      .send = mpi_send,
                                      .receive = mpi_receive,
                                      .test = mpi_test,
                                      .forget = mpi_forget,
                                      .close = mpi_close};
