// SPDX-License-Identifier: Apache-2.0
// Messages between ranks by MPI: Open MPI, MPICH and the like. A library of its own (libcleave_mpi.so), which
// links MPI and nothing of Cleave. MPI is asked for one caller at a time, so a lock is held around each call,
// and none waits.
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/transport.h"

_Static_assert(sizeof(MPI_Request) <= sizeof(void *), "a request is kept in a message's handle");

/** There is one MPI in a process. */
typedef struct engine {
    pthread_mutex_t lock;
    MPI_Comm comm;
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
    MPI_Comm_free(&mpi->comm);
    MPI_Finalize();
    pthread_mutex_destroy(&mpi->lock);
}

static int mpi_open(void *what, clv__transport_place *place, void **self, char why[CLV__TRANSPORT_WHY]) {
    static engine only; // as MPI's own state is
    int begun = 0, given = 0, code;
    MPI_Comm machine;
    (void)what;
    MPI_Initialized(&begun);
    if (begun) {
        snprintf(why, CLV__TRANSPORT_WHY, "this process has initialized MPI already");
        return 1;
    }
    if ((code = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &given)) != MPI_SUCCESS)
        return failed(code, "MPI_Init_thread", why);
    if (given < MPI_THREAD_SERIALIZED) {
        snprintf(why, CLV__TRANSPORT_WHY, "this MPI cannot be called from several threads");
        MPI_Finalize();
        return 1;
    }
    pthread_mutex_init(&only.lock, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &only.comm);
    MPI_Comm_set_errhandler(only.comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(only.comm, &place->rank);
    MPI_Comm_size(only.comm, &place->size);
    MPI_Comm_split_type(only.comm, MPI_COMM_TYPE_SHARED, place->rank, MPI_INFO_NULL, &machine);
    MPI_Comm_rank(machine, &place->local);
    MPI_Comm_free(&machine);
    const char *recovery = getenv("OMPI_MCA_orte_enable_recovery"); // of Open MPI's mpirun --enable-recovery
    place->survives = recovery && strcmp(recovery, "1") == 0;
    *self = &only;
    return 0;
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
