/* fence.c - limits the system calls of the process with the student's code.
 *
 * A seccomp filter allows calls for memory, time and output. It reports new processes, changes of
 * files, signals to other processes and connections. All other calls fail with EPERM. Files may be
 * opened for reading only until the answer is loaded, because the loader must read it. Landlock
 * limits which files these are. */
#define _GNU_SOURCE
#include "common/answer.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

bool fence_wanted(const char *part)
{
    const char *without = getenv("LESSON_WITHOUT");
    return !without || !strstr(without, part);
}

/* ---- Landlock: Linux 5.13; the newer the version, the more it can refuse ---- */
#if defined __linux__ && defined __NR_landlock_create_ruleset
enum { EXECUTES = 1, WRITES_FILE = 2, READS_FILE = 4, READS_FOLDER = 8, TRUNCATES = 1 << 14 };
enum { WITH_RENAME = 2, WITH_TRUNCATE = 3, WITH_NETWORK = 4, WITH_DEVICES = 5, WITH_SIGNALS = 6 };

int fence_landlock(void)
{
    long version = syscall(__NR_landlock_create_ruleset, NULL, 0, 1);
    return fence_wanted("landlock") && version > 0 ? (int)version : 0;
}

static void allow_below(int rules, const char *path, uint64_t access)
{
    struct stat s;
    int descriptor = open(path, O_PATH | O_CLOEXEC);
    if (descriptor < 0 || fstat(descriptor, &s))
        return; /* a folder that this system does not have */
    if (!S_ISDIR(s.st_mode))
        access &= EXECUTES | WRITES_FILE | READS_FILE | TRUNCATES;
    struct {
        uint64_t access;
        int32_t descriptor;
    } __attribute__((packed)) below = { access, descriptor };
    syscall(__NR_landlock_add_rule, rules, 1, &below, 0);
    close(descriptor);
}

bool fence_files(const char *const *reads, const char *const *writes)
{
    int version = fence_landlock();
    int calls = 13 + (version >= WITH_RENAME) + (version >= WITH_TRUNCATE) + (version >= WITH_DEVICES);
    struct {
        uint64_t files, network, scope;
    } refused = { (1u << calls) - 1, 3, 3 };
    size_t bytes = version < WITH_NETWORK ? 8 : version < WITH_SIGNALS ? 16 : 24;
    if (!version)
        return false;
    int rules = (int)syscall(__NR_landlock_create_ruleset, &refused, bytes, 0);
    for (int k = 0; rules >= 0 && reads[k]; k++)
        allow_below(rules, reads[k], EXECUTES | READS_FILE | READS_FOLDER);
    for (int k = 0; rules >= 0 && writes[k]; k++)
        allow_below(rules, writes[k], refused.files);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    bool done = rules >= 0 && syscall(__NR_landlock_restrict_self, rules, 0) == 0;
    close(rules);
    return done;
}
#else
int fence_landlock(void) { return 0; }
bool fence_files(const char *const *reads, const char *const *writes)
{
    return (void)reads, (void)writes, false;
}
#endif

/* ---- seccomp ---- */
#if defined __linux__ && (defined __x86_64__ || defined __aarch64__)
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#ifdef __x86_64__
enum { ARCHITECTURE = AUDIT_ARCH_X86_64 };
#else
enum { ARCHITECTURE = AUDIT_ARCH_AARCH64 };
#endif

/* ---- the calls ---- */
static const int allowed[] = {
    __NR_read, __NR_write, __NR_readv, __NR_writev, __NR_pread64, __NR_close, __NR_fstat,
    __NR_newfstatat, __NR_lseek, __NR_mmap, __NR_munmap, __NR_mremap, __NR_mprotect, __NR_brk,
    __NR_madvise, __NR_rt_sigaction, __NR_rt_sigprocmask, __NR_rt_sigreturn, __NR_sigaltstack,
    __NR_exit, __NR_exit_group, __NR_futex, __NR_getpid, __NR_gettid, __NR_getppid, __NR_getuid,
    __NR_clock_gettime, __NR_clock_getres, __NR_clock_nanosleep, __NR_nanosleep, __NR_gettimeofday,
    __NR_sched_yield, __NR_sched_getaffinity, __NR_getcpu, __NR_getrusage, __NR_times, __NR_getrandom,
    __NR_uname, __NR_sysinfo, __NR_dup, __NR_dup3, __NR_setitimer, __NR_restart_syscall,
#ifdef __NR_dup2
    __NR_dup2, __NR_time, __NR_arch_prctl, __NR_pause,
#endif
#ifdef __NR_rseq
    __NR_rseq,
#endif
};
/* Allowed only for draw, which writes a picture. */
static const int writing[] = { __NR_openat, __NR_renameat, __NR_renameat2, __NR_unlinkat, __NR_fsync,
                               __NR_fdatasync, __NR_fchmod, __NR_ftruncate, __NR_getdents64,
                               __NR_flock, __NR_fcntl, __NR_linkat, __NR_faccessat, __NR_readlinkat,
                               __NR_umask, __NR_utimensat,
#ifdef __NR_open
                               __NR_open, __NR_rename, __NR_unlink, __NR_access, __NR_stat,
                               __NR_lstat, __NR_readlink, __NR_link,
#endif
};

typedef struct {
    int call;
    const char *what;
} reported;
static const char process[] = "it starts another process", file[] = "it writes files",
                  signals[] = "it sends signals to other processes",
                  network[] = "it opens a network connection";
static const reported refusals[] = {
    { __NR_clone, process }, { __NR_execve, process }, { __NR_execveat, process },
    { __NR_openat, file }, { __NR_renameat, file }, { __NR_renameat2, file },
    { __NR_unlinkat, file }, { __NR_mkdirat, file }, { __NR_linkat, file }, { __NR_symlinkat, file },
    { __NR_truncate, file }, { __NR_ftruncate, file }, { __NR_fchmodat, file }, { __NR_fchmod, file },
    { __NR_fchownat, file }, { __NR_mknodat, file }, { __NR_utimensat, file },
    { __NR_socket, network }, { __NR_socketpair, network }, { __NR_tkill, signals },
    { __NR_kill, signals }, { __NR_tgkill, signals }, { __NR_rt_sigqueueinfo, signals },
#ifdef __NR_clone3
    { __NR_clone3, process },
#endif
#ifdef __NR_fork
    { __NR_fork, process }, { __NR_vfork, process }, { __NR_open, file }, { __NR_creat, file },
    { __NR_rename, file }, { __NR_unlink, file }, { __NR_rmdir, file }, { __NR_mkdir, file },
    { __NR_link, file }, { __NR_symlink, file }, { __NR_chmod, file }, { __NR_chown, file },
    { __NR_mknod, file },
#endif
};
enum {
    ALLOWED = sizeof allowed / sizeof *allowed,
    WRITING = sizeof writing / sizeof *writing,
    REFUSALS = sizeof refusals / sizeof *refusals
};

/* ---- the filter ---- */
typedef struct {
    struct sock_filter line[4 * (ALLOWED + WRITING + REFUSALS) + 64];
    unsigned short n;
} filter;

static void line(filter *f, struct sock_filter next) { f->line[f->n++] = next; }
static void load(filter *f, size_t offset)
{
    line(f, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}
static void result(filter *f, uint32_t action)
{
    line(f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}
/* Skips the given number of lines unless the loaded number is k. */
static void unless(filter *f, uint32_t k, uint8_t skipped)
{
    line(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, k, 0, skipped));
}
static void when(filter *f, int call, uint32_t action)
{
    unless(f, (uint32_t)call, 1);
    result(f, action);
}
static size_t argument(int k)
{
    size_t low = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 0 : 4;
    return offsetof(struct seccomp_data, args) + (size_t)k * sizeof(uint64_t) + low;
}

/* Allows the call if the argument, masked with `bits`, is k. */
static void when_argument(filter *f, int call, int which, uint32_t bits, uint32_t k)
{
    unless(f, (uint32_t)call, 5);
    load(f, argument(which));
    line(f, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, bits));
    unless(f, k, 1);
    result(f, SECCOMP_RET_ALLOW);
    load(f, offsetof(struct seccomp_data, nr));
}

static void begin(filter *f)
{
    f->n = 0;
    load(f, offsetof(struct seccomp_data, arch));
    unless(f, ARCHITECTURE, 1);
    line(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0));
    result(f, SECCOMP_RET_KILL_PROCESS);
    load(f, offsetof(struct seccomp_data, nr));
}

static bool install(filter *f)
{
    struct sock_fprog program = { f->n, f->line };
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

/* ---- reports of refused calls ---- */
static void (*tell)(const char *what);

static void is_refused(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    for (int k = 0; k < REFUSALS; k++)
        if (refusals[k].call == info->si_syscall)
            tell(refusals[k].what);
}

bool fence_exists(void)
{
    return fence_wanted("seccomp") && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL, 0, 0) &&
           errno == EFAULT;
}

void fence_before(bool may_write, void (*refused)(const char *what))
{
    static filter f;
    const uint32_t to_write = O_ACCMODE | O_CREAT | O_TRUNC;
    if (!fence_exists())
        return;
    tell = refused;
    sigaction(SIGSYS, &(struct sigaction){ .sa_sigaction = is_refused, .sa_flags = SA_SIGINFO }, NULL);
    begin(&f);
    for (int k = 0; k < ALLOWED; k++)
        when(&f, allowed[k], SECCOMP_RET_ALLOW);
    for (int k = 0; k < WRITING && may_write; k++)
        when(&f, writing[k], SECCOMP_RET_ALLOW);
    when_argument(&f, __NR_openat, 2, to_write, O_RDONLY);
#ifdef __NR_open
    when_argument(&f, __NR_open, 1, to_write, O_RDONLY);
#endif
    when_argument(&f, __NR_prctl, 0, ~0u, PR_SET_SECCOMP);
    when_argument(&f, __NR_kill, 0, ~0u, (uint32_t)getpid());
    when_argument(&f, __NR_tgkill, 0, ~0u, (uint32_t)getpid());
    when_argument(&f, __NR_prlimit64, 0, ~0u, 0);
    for (int k = 0; k < REFUSALS; k++)
        when(&f, refusals[k].call, SECCOMP_RET_TRAP);
    result(&f, SECCOMP_RET_ERRNO | EPERM);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    install(&f);
}

void fence_after(bool may_write)
{
    static filter f;
    if (may_write || !fence_exists())
        return;
    begin(&f);
    when(&f, __NR_openat, SECCOMP_RET_ERRNO | EACCES);
#ifdef __NR_open
    when(&f, __NR_open, SECCOMP_RET_ERRNO | EACCES);
#endif
    result(&f, SECCOMP_RET_ALLOW);
    install(&f);
}
#else
bool fence_exists(void) { return false; }
void fence_before(bool may_write, void (*refused)(const char *what))
{
    (void)may_write, (void)refused;
}
void fence_after(bool may_write) { (void)may_write; }
#endif
