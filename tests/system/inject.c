// SPDX-License-Identifier: Apache-2.0
// Runs a command and spoils one of its calls of the system: the N-th one that touches a file of the working folder.
//
//     inject FAULT N MARK COMMAND...      FAULT: a number (errno), `short` (half of the bytes), or `kill` (SIGKILL)
//
// Calls that count are those below (`calls`) on a path in the working folder, of all threads and child processes, in the order
// in which they come; so the loader's files, drivers and /proc are left alone. MARK gets the number of calls that were seen,
// and says whether the fault was reached. Exits as the command does, with 128 + signal if one ended it. Linux on x86-64,
// whose seccomp stops the command at such calls alone: stops at every call take longer than the command.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __x86_64__

typedef struct call {
    long number;
    int path, descriptor; // argument that names the file, -1: none
    bool counts_bytes;    // argument 2 is a number of bytes
} call;

static const call calls[] = {
    {SYS_openat, 1, -1, false},     {SYS_open, 0, -1, false},      {SYS_read, -1, 0, true},
    {SYS_pread64, -1, 0, true},     {SYS_write, -1, 0, true},      {SYS_pwrite64, -1, 0, true},
    {SYS_fsync, -1, 0, false},      {SYS_fdatasync, -1, 0, false}, {SYS_ftruncate, -1, 0, false},
    {SYS_flock, -1, 0, false},      {SYS_fchmod, -1, 0, false},    {SYS_rename, 1, -1, false},
    {SYS_renameat2, 3, -1, false},  {SYS_link, 1, -1, false},      {SYS_linkat, 3, -1, false},
    {SYS_unlink, 0, -1, false},     {SYS_unlinkat, 1, -1, false},  {SYS_mkdir, 0, -1, false},
    {SYS_close, -1, 0, false},      {SYS_mmap, -1, 4, false},      {SYS_lseek, -1, 0, false},
    {SYS_getdents64, -1, 0, false},
};

static char folder[PATH_MAX];
static long seen, wanted;
static bool reached;

static unsigned long long argument(const struct user_regs_struct *r, int i) {
    return (unsigned long long[]){r->rdi, r->rsi, r->rdx, r->r10, r->r8, r->r9}[i];
}

/** The text at an address of the process. */
static void text_of(pid_t process, unsigned long long at, char *out, size_t room) {
    struct iovec local = {out, room - 1}, remote = {(void *)(uintptr_t)at, room - 1};
    ssize_t n = process_vm_readv(process, &local, 1, &remote, 1, 0);
    if (n < 0) { // the end of a page, perhaps
        remote.iov_len = local.iov_len = 4096 - (at & 4095) < room - 1 ? 4096 - (at & 4095) : room - 1;
        n = process_vm_readv(process, &local, 1, &remote, 1, 0);
    }
    out[n > 0 ? n : 0] = '\0';
}

/** Does the call touch a file of the working folder? */
static bool counts(pid_t process, const struct user_regs_struct *r, const call **which) {
    char path[PATH_MAX] = "";
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (calls[i].number != (long)r->orig_rax) continue;
        *which = &calls[i];
        if (calls[i].path >= 0) {
            text_of(process, argument(r, calls[i].path), path, sizeof path);
            return path[0] != '/' ? path[0] != '\0' : !strncmp(path, folder, strlen(folder));
        }
        char link[64];
        snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)process, (int)argument(r, calls[i].descriptor));
        ssize_t n = readlink(link, path, sizeof path - 1);
        path[n > 0 ? n : 0] = '\0';
        size_t length = strlen(folder); // the standard streams are the script's own
        return !strncmp(path, folder, length) && strcmp(path + length, "/out") &&
               strcmp(path + length, "/err");
    }
    return false;
}

typedef struct thread {
    pid_t id;
    long answer; // what the call shall say at its end; 0: what it said
} thread;

static thread threads[256];

static thread *thread_of(pid_t id) {
    for (size_t i = 0; i < 256; i++)
        if (threads[i].id == id) return &threads[i];
    for (size_t i = 0; i < 256; i++)
        if (!threads[i].id) return threads[i] = (thread){.id = id}, &threads[i];
    return NULL;
}

static void spoil(thread *t, pid_t process, struct user_regs_struct *r, const call *which,
                  const char *fault) {
    reached = true;
    if (!strcmp(fault, "kill")) {
        kill(process, SIGKILL);
    } else if (!strcmp(fault, "short")) {
        if (which->counts_bytes && r->rdx > 1) r->rdx /= 2;
        ptrace(PTRACE_SETREGS, process, 0, r);
    } else {
        t->answer = -strtol(fault, NULL, 10);
        if (which->number == SYS_close) return; // a file is closed whatever close says
        r->orig_rax = (unsigned long long)-1;
        ptrace(PTRACE_SETREGS, process, 0, r);
    }
}

/** How the process goes on: to the end of its call, or to the next that may count. */
static int at_call(pid_t process, bool ends, const char *fault) {
    thread *t = thread_of(process);
    struct user_regs_struct r;
    if (!t || ptrace(PTRACE_GETREGS, process, 0, &r)) return PTRACE_CONT;
    const call *which = NULL;
    if (!ends && counts(process, &r, &which) && ++seen == wanted) {
        spoil(t, process, &r, which, fault);
        return t->answer ? PTRACE_SYSCALL : PTRACE_CONT;
    }
    if (ends && t->answer) {
        r.rax = (unsigned long long)t->answer;
        t->answer = 0;
        ptrace(PTRACE_SETREGS, process, 0, &r);
    }
    return PTRACE_CONT;
}

/** Follow the processes until the first one has ended; its exit code. */
static int follow(pid_t first, const char *fault) {
    int code = 1, status;
    for (pid_t process; (process = waitpid(-1, &status, __WALL)) > 0;) {
        if (WIFEXITED(status) || WIFSIGNALED(status)) {
            if (process == first) code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            thread *t = thread_of(process);
            if (t) *t = (thread){0};
            continue;
        }
        int signal = WSTOPSIG(status), pass = 0, how = PTRACE_CONT;
        const bool begins = status >> 8 == (SIGTRAP | PTRACE_EVENT_SECCOMP << 8);
        if (begins || signal == (SIGTRAP | 0x80))
            how = at_call(process, !begins, fault);
        else if (signal != SIGTRAP && signal != SIGSTOP)
            pass = signal;
        ptrace(how, process, 0, pass);
    }
    return code;
}

/** From now on the process stops at each of `calls`, and so does what it starts. */
static bool stop_at_calls(void) {
    enum { N = sizeof calls / sizeof *calls };
    struct sock_filter filter[2 * N + 2] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    for (size_t i = 0; i < N; i++) {
        filter[2 * i + 1] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i].number, 0, 1);
        filter[2 * i + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
    }
    filter[2 * N + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(int argc, char **argv) {
    if (argc < 5 || !getcwd(folder, sizeof folder)) return 2;
    wanted = strtol(argv[2], NULL, 10);
    pid_t process = fork();
    if (process == 0) {
        if (ptrace(PTRACE_TRACEME, 0, 0, 0)) _exit(77);
        raise(SIGSTOP);
        if (!stop_at_calls()) _exit(77);
        execvp(argv[4], argv + 4);
        _exit(127);
    }
    int status;
    if (process < 0 || waitpid(process, &status, 0) < 0) return 2;
    if (WIFEXITED(status)) return WEXITSTATUS(status); // 77: this system lets no process trace another
    ptrace(PTRACE_SETOPTIONS, process, 0,
           PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
               PTRACE_O_TRACEEXEC | PTRACE_O_TRACESECCOMP | PTRACE_O_EXITKILL);
    ptrace(PTRACE_CONT, process, 0, 0);
    int code = follow(process, argv[1]);
    FILE *mark = fopen(argv[3], "w");
    if (!mark) return 2;
    fprintf(mark, "%ld %s\n", seen, reached ? "reached" : "untouched");
    fclose(mark);
    return code;
}

#else
int main(void) {
    return 77;
}
#endif
