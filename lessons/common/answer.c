/* answer.c - the two processes of a lesson's program, see answer.h: the child runs the student's code,
 * the parent compares. They communicate only by a pipe from the child to the parent. */
#define _GNU_SOURCE
#include "common/answer.h"
#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <grp.h>
#include <math.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PRINTED = 1000000, DRAWN = 8 << 20, MEMORY_MB = 1000, TEXT = 400, PAINTED = 1 << 15, NOBODY = 65534 };
enum { DATA, WORDS, DONE };
typedef struct {
    int kind;
    bool keeps;
    size_t bytes;
} header;

static int to_parent = -1, from_child = -1, shown = -1, printed = -1;
static pid_t child;
static void *library;
static const char *crash_hint;
static const char *said; /* file with the answer's own output */
static double began;
static int seconds;
static bool compared; /* whether the parent also runs the check */

bool answer_here(void) { return library != NULL; }

/* Compares checksums of the answer's variables that begin as 0, which are between two symbols. */
static bool kept;
bool answer_keeps(void)
{
    static unsigned before;
    unsigned sum = 1;
    if (kept || !library)
        return kept;
    for (const char *at = dlsym(library, "__bss_start"), *end = dlsym(library, "_end"); at < end; at++)
        sum = 31 * sum + (unsigned char)*at;
    kept = before && sum != before, before = sum;
    return kept;
}
void hint_of_crash(const char *hint) { crash_hint = hint; }

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- the child ---- */
static void write_all(const void *from, size_t bytes)
{
    const char *at = from;
    while (bytes > 0) {
        ssize_t n = write(to_parent, at, bytes);
        if (n <= 0)
            _exit(3);
        at += n, bytes -= (size_t)n;
    }
}

static void send_frame(int kind, const void *from, size_t bytes)
{
    header h;
    memset(&h, 0, sizeof h);
    h.kind = kind, h.bytes = bytes, h.keeps = answer_keeps();
    write_all(&h, sizeof h), write_all(from, bytes);
}

static const char *signal_name(int number)
{
    switch (number) {
    case SIGSEGV: return "SEGV";
    case SIGBUS:  return "BUS";
    case SIGFPE:  return "FPE";
    case SIGILL:  return "ILL";
    case SIGABRT: return "ABRT";
    default:      return strsignal(number);
    }
}

static _Noreturn void send_verdict(const char *text)
{
    send_frame(WORDS, text, strnlen(text, TEXT));
    _exit(1);
}

static void refused(const char *what) { send_verdict(what); }

/* Each array has its own block. A block that is not exact has guards on both sides. */
enum { BLOCKS = 16, GUARD = 64, MOST_GUARD = 4096, NUMBERS = 8, LISTS = 2, LIST = 8 };
#define GUARD_BYTE 0xFD
typedef struct {
    const char *name;
    void *of;
    unsigned char *copy;
    size_t bytes, size, guard;
    bool writes;
} block;
static struct {
    const char *function; /* NULL: between calls */
    const char *names;
    double numbers[NUMBERS]; /* from index 1 */
    struct {
        const char *name;
        const int *from;
        int n;
    } lists[LISTS]; /* the ints that it reads */
    block blocks[BLOCKS];
    int n, n_lists, number;
} call;

static char case_text[TEXT];
static void __attribute__((format(printf, 1, 2))) append(const char *format, ...)
{
    size_t n = strlen(case_text);
    va_list list;
    va_start(list, format);
    vsnprintf(case_text + n, sizeof case_text - n, format, list);
    va_end(list);
}

/* Returns the case of the call as a text, such as " (of->n = 2, of->H = 1, of->len = 3 0)". */
static const char *call_case(void)
{
    const char *name = call.names, *between = " (";
    case_text[0] = 0;
    for (int k = 1; *name; k++, between = ", ") {
        int letters = (int)strcspn(name, ",");
        append("%s%.*s = %g", between, letters, name, call.numbers[k]);
        name += letters, name += strspn(name, ", ");
    }
    for (int k = 0; k < call.n_lists; k++, between = ", ") {
        append("%s%s =%s", between, call.lists[k].name, call.lists[k].n ? "" : " none");
        for (int i = 0; i < call.lists[k].n && i < LIST; i++)
            append(" %d", call.lists[k].from[i]);
        append("%s", call.lists[k].n > LIST ? " .." : "");
    }
    append("%s", strchr(between, ',') ? ")" : "");
    return case_text;
}

static _Noreturn void send_crash(const char *what)
{
    char text[TEXT];
    snprintf(text, sizeof text, "it crashes: %s", what);
    if (call.function)
        snprintf(text, sizeof text, "it crashes in %s%.250s: %s", call.function, call_case(), what);
    send_verdict(text);
}

static sigjmp_buf way_out;
static bool may_escape;

bool answer_survives(void (*work)(void *data), void *data)
{
    bool whole = sigsetjmp(way_out, 1) == 0;
    may_escape = whole;
    if (whole)
        work(data);
    may_escape = false, call.function = NULL;
    return whole;
}

static void crashed(int number)
{
    char text[TEXT];
    if (may_escape)
        siglongjmp(way_out, 1);
    snprintf(text, sizeof text, "signal %d, %s", number, signal_name(number));
    if (!crash_hint)
        send_crash(text);
    snprintf(text, sizeof text, "hint: %s", crash_hint);
    send_verdict(text);
}

static bool exact;
static char pending[TEXT]; /* a hint that is used if the check finds no other mistake */

static void send_pending(void)
{
    if (pending[0])
        send_verdict(pending);
}

void answer_exact(bool wanted)
{
    exact = wanted;
    if (answer_here())
        send_pending();
}

/* Functions of the address sanitizer. It calls __asan_on_error at an access outside of memory. */
void *__asan_get_report_address(void) __attribute__((weak));
int __asan_get_report_access_type(void) __attribute__((weak));
const char *__asan_get_report_description(void) __attribute__((weak));
void __asan_on_error(void);

static void hint_of_block(const block *b, intptr_t offset, bool writes)
{
    char text[TEXT], numbers[120] = "is empty here";
    long n = (long)(b->bytes / b->size), at = (long)(offset / (intptr_t)b->size);
    if (offset < 0)
        at = -(long)((-offset + (intptr_t)b->size - 1) / (intptr_t)b->size);
    if (n > 0)
        snprintf(numbers, sizeof numbers, "has %ld numbers here, %.20s[0] .. %.20s[%ld]", n, b->name,
                 b->name, n - 1);
    snprintf(text, sizeof text, "hint: %s %s %s[%ld]: %s %s%.200s", call.function,
             writes ? "writes" : "reads", b->name, at, b->name, numbers, call_case());
    send_verdict(text);
}

void __asan_on_error(void)
{
    const char *address = __asan_get_report_address();
    bool writes = __asan_get_report_access_type();
    const block *nearest = NULL;
    intptr_t least = 1 << 16;
    char text[TEXT];
    if (!library)
        return;
    if (crash_hint)
        crashed(SIGSEGV);
    for (int k = 0; k < call.n; k++) {
        const block *b = call.blocks + k;
        intptr_t before = (char *)b->copy - address, after = address - (char *)b->copy - (intptr_t)b->bytes;
        intptr_t distance = before > after ? before : after;
        if (b->guard == 0 && b->copy && distance < least)
            least = distance, nearest = b;
    }
    if (nearest)
        hint_of_block(nearest, address - (char *)nearest->copy, writes);
    snprintf(text, sizeof text, "%s: it %s memory outside of an array", __asan_get_report_description(),
             writes ? "writes" : "reads");
    send_crash(text);
}

static void *new_block(const char *name, const void *of, size_t bytes, size_t size, bool writes)
{
    if (call.n == BLOCKS)
        abort();
    block *b = call.blocks + call.n++;
    bool is_exact = exact && __asan_get_report_address;
    size_t guard = GUARD * size < MOST_GUARD ? GUARD * size : MOST_GUARD;
    *b = (block){ name, (void *)(uintptr_t)of, NULL, bytes, size, is_exact ? 0 : guard, writes };
    if (!answer_here())
        return b->of;
    unsigned char *memory = malloc(bytes + 2 * b->guard);
    if (!memory)
        abort();
    if (b->guard)
        memset(memory, GUARD_BYTE, bytes + 2 * b->guard);
    b->copy = memory + b->guard;
    if (bytes > 0)
        memcpy(b->copy, of, bytes);
    return b->copy;
}

void call_begins(const char *function, const char *names, const double *numbers)
{
    call.function = function, call.names = names, call.n = call.n_lists = 0, call.number++;
    memcpy(call.numbers, numbers, sizeof call.numbers);
    if (shown < 0 || !answer_here())
        return;
    fflush(stdout);
    dup2(printed, STDOUT_FILENO);
}

const void *call_reads(const char *name, const void *from, int n, size_t size)
{
    if (size == sizeof(int) && call.n_lists < LISTS)
        call.lists[call.n_lists].name = name, call.lists[call.n_lists].from = from,
        call.lists[call.n_lists++].n = n;
    if (!exact || !answer_here())
        return from;
    return new_block(name, from, (size_t)n * size, size, false);
}

void *call_writes(const char *name, void *to, int n, size_t size)
{
    return new_block(name, to, (size_t)n * size, size, true);
}

static bool guards_are_whole(const block *b)
{
    for (size_t k = 0; k < b->guard; k++)
        if (b->copy[b->bytes + k] != GUARD_BYTE || b->copy[-(ptrdiff_t)k - 1] != GUARD_BYTE)
            return false;
    return true;
}

static void end_block(block *b)
{
    if (answer_here() && !guards_are_whole(b) && !pending[0])
        snprintf(pending, sizeof pending,
                 "hint: %s writes before the start or after the end of %s, which has %d numbers here%.200s",
                 call.function, b->name, (int)(b->bytes / b->size), call_case());
    if (answer_here() && b->writes && b->bytes > 0)
        memcpy(b->of, b->copy, b->bytes);
    if (answer_here())
        free(b->copy - b->guard);
    b->copy = NULL;
    if (b->writes)
        share(b->of, b->bytes);
}

void call_ends(void)
{
    if (shown >= 0 && answer_here()) {
        fflush(stdout);
        dup2(shown, STDOUT_FILENO);
    }
    for (int k = 0; k < call.n; k++)
        end_block(call.blocks + k);
    call.n = 0, call.function = NULL;
}

void *answer_function(const char *name)
{
    void *function = library ? dlsym(library, name) : NULL;
    if (library && !function) {
        char text[TEXT];
        snprintf(text, sizeof text, "it does not compile: undefined function %s", name);
        send_verdict(text);
    }
    return function;
}

/* This pattern is positive as an int and as a double. The compiler's pattern is negative. Without
 * optimisation all variables are on the stack. */
void __attribute__((noinline)) answer_paint(void)
{
    volatile uint64_t *top = __builtin_frame_address(0);
    for (volatile uint64_t *p = top - PAINTED / sizeof *top; p < top; p++)
        *p = 0x7E7E7E7E7E7E7E7E;
}

static void limit(int what, rlim_t soft, rlim_t hard)
{
    setrlimit(what, &(struct rlimit){ soft, hard });
}

static void set_limits(bool may_write)
{
    rlim_t cpu = (rlim_t)seconds, file = may_write ? DRAWN : PRINTED;
    limit(RLIMIT_CORE, 0, 0), limit(RLIMIT_CPU, cpu, cpu + 1), limit(RLIMIT_FSIZE, file, file);
    if (geteuid() == 0 && !may_write && setgroups(0, NULL) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0)
        if (setresuid(NOBODY, NOBODY, NOBODY))
            _exit(3);
    limit(RLIMIT_NPROC, 0, 0);
}

static void catch_crashes(void)
{
    static const int numbers[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
    static char stack[1 << 16];
    sigaltstack(&(stack_t){ .ss_sp = stack, .ss_size = sizeof stack }, NULL);
    for (int k = 0; k < 5; k++)
        sigaction(numbers[k],
                  &(struct sigaction){ .sa_handler = crashed, .sa_flags = SA_ONSTACK | SA_NODEFER },
                  NULL);
}

/* An endless loop does not leave its call. Calls of a right answer take less than a tenth of a tick, so
 * two ticks in one call end it long before its time is over. Allocations count as calls. */
static double tick(void) { return seconds / 8.; }

static void ticks(int number)
{
    static int before;
    char text[TEXT];
    (void)number;
    if (call.function && call.number == before) {
        snprintf(text, sizeof text, "it does not end within %g s: a call of %s%.250s", tick(), call.function,
                 call_case());
        send_verdict(text);
    }
    before = call.number;
}

void call_allocates(void) { call.number++; }

static void watch_calls(void)
{
    struct timeval each = { (time_t)tick(), (suseconds_t)(1e6 * fmod(tick(), 1)) };
    sigaction(SIGPROF, &(struct sigaction){ .sa_handler = ticks, .sa_flags = SA_RESTART | SA_ONSTACK }, NULL);
    setitimer(ITIMER_PROF, &(struct itimerval){ each, each }, NULL);
}

static void close_others(int kept)
{
    for (int k = 3; k < 256; k++)
        if (k != to_parent && k != shown && k != printed && k != kept)
            close(k);
}

static void load_answer(int descriptor, bool may_write)
{
    char text[TEXT];
    close_others(descriptor);
    set_limits(may_write);
    catch_crashes();
    watch_calls();
    snprintf(text, sizeof text, "/proc/self/fd/%d", descriptor);
    fence_files((const char *const[]){ text, FENCE_LIBRARIES, NULL },
                (const char *const[]){ may_write ? "." : NULL, NULL });
    fence_before(may_write, refused);
    library = dlopen(text, RTLD_NOW | RTLD_LOCAL);
    const char *trouble = library ? NULL : dlerror();
    const char *undefined = trouble ? strstr(trouble, "undefined") : NULL;
    fence_after(may_write);
    close(descriptor);
    if (!library) {
        snprintf(text, sizeof text, "it does not compile: %s", undefined ? undefined : trouble);
        send_verdict(text);
    }
    answer_keeps();
    if (dlsym(library, "main"))
        send_verdict("it does not compile: multiple definition of main: remove main from your file");
}

/* ---- the parent ---- */
/* Returns field `which` of /proc/PID/stat; NULL if it does not exist. */
static const char *stat_field(const char *pid, int which, char *text, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = descriptor < 0 ? -1 : read(descriptor, text, size - 1);
    if (descriptor >= 0)
        close(descriptor);
    text[n > 0 ? n : 0] = 0;
    const char *at = strrchr(text, ')');
    for (int k = 2; at && k < which; k++)
        at = strchr(at + 1, ' ');
    return at ? at + 1 : NULL;
}

/* Ends all children and returns their number. Processes that the child started become children of this
 * process when the child ends. */
static int end_children(void)
{
    int ended = 0;
    for (int round = 0; round < 50 && waitpid(-1, NULL, WNOHANG) >= 0; round++) {
        char text[512];
        DIR *all = opendir("/proc");
        for (struct dirent *e = all ? readdir(all) : NULL; e; e = readdir(all)) {
            const char *parent = e->d_name[0] > '0' && e->d_name[0] <= '9' ?
                                     stat_field(e->d_name, 4, text, sizeof text) :
                                     NULL;
            if (parent && atoi(parent) == getpid() && kill(atoi(e->d_name), SIGKILL) == 0)
                ended++;
        }
        if (all)
            closedir(all);
        usleep(1000);
    }
    return ended;
}

static const char *named;
void answer_name(const char *name) { named = name; }

/* Prints the first six words of a text before "(", without numbers and formats, as a name that is the same
 * for all shapes. */
static void print_name(const char *text)
{
    int words = 0;
    fprintf(stderr, "name: ");
    text += strncmp(text, "hint: ", 6) ? 0 : 6;
    for (; *text && *text != '(' && words < 6; text += strspn(text, " ")) {
        size_t n = strcspn(text, " "), letters = 0;
        while (letters < n && (isalpha((unsigned char)text[letters]) || text[letters] == '_'))
            letters++;
        if (letters == n || (letters == n - 1 && letters > 0 && strchr(",.:;", text[letters])))
            fprintf(stderr, "%s%.*s", words++ ? "-" : "", (int)letters, text);
        text += n;
    }
    fputc('\n', stderr);
}

_Noreturn void answer_verdict(const char *text)
{
    if (to_parent >= 0)
        send_verdict(text);
    fflush(stdout);
    if (child > 0)
        kill(child, SIGKILL);
    end_children();
    print_name(named ? named : text);
    fprintf(stderr, "verdict: %s\n", text);
    _exit(strcmp(text, "right") ? 1 : 0);
}

static _Noreturn void verdict_of(const char *format, ...) __attribute__((format(printf, 1, 2)));
static _Noreturn void verdict_of(const char *format, ...)
{
    char text[TEXT + 1];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    answer_verdict(text);
}

static void check_limits(void)
{
    char pid[16], text[512];
    snprintf(pid, sizeof pid, "%d", (int)child);
    const char *pages = stat_field(pid, 24, text, sizeof text);
    if (pages && atol(pages) * (sysconf(_SC_PAGESIZE) >> 10) > MEMORY_MB << 10)
        answer_verdict("it needs too much memory");
    if (now() - began > 2 * seconds + 8)
        verdict_of("it does not end within %d s", seconds);
}

/* Prints the verdict on a child that ended without one. */
static _Noreturn void verdict_of_end(void)
{
    int status = 0;
    waitpid(child, &status, 0);
    child = 0;
    int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (number == SIGXCPU || number == SIGKILL)
        verdict_of("it does not end within %d s", seconds);
    if (number == SIGSYS)
        answer_verdict("it starts another process, or makes another call that is not allowed");
    if (number == SIGXFSZ)
        verdict_of("it prints more than a megabyte");
    if (number)
        verdict_of("it crashes: signal %d, %s", number, signal_name(number));
    verdict_of("it exits with status %d before the end of the check", WEXITSTATUS(status));
}

static void read_all(void *to, size_t bytes)
{
    char *at = to;
    struct pollfd p = { .fd = from_child, .events = POLLIN };
    while (bytes > 0) {
        ssize_t n = poll(&p, 1, 20) > 0 ? read(from_child, at, bytes) : -1;
        if (n == 0)
            verdict_of_end();
        if (n > 0)
            at += n, bytes -= (size_t)n;
        else
            check_limits();
    }
}

static void receive(int kind, void *to, size_t bytes)
{
    header h;
    char text[TEXT + 1] = "";
    read_all(&h, sizeof h);
    kept |= h.keeps;
    if (h.kind == WORDS && h.bytes <= TEXT) {
        read_all(text, h.bytes);
        answer_verdict(strcmp(text, "right") ? text : "it sends a verdict of its own");
    }
    if (h.kind != kind || h.bytes != bytes)
        answer_verdict("it sends unexpected data");
    read_all(to, bytes);
}

void share(void *data, size_t bytes)
{
    if (answer_here() && compared)
        send_frame(DATA, data, bytes);
    else if (!answer_here())
        receive(DATA, data, bytes);
}

double shared(double value)
{
    share(&value, sizeof value);
    return value;
}

/* Reports the first runtime error that the undefined behaviour sanitizer has printed. */
static void check_printed(void)
{
    char line[TEXT], *at;
    FILE *file = fopen(said, "r");
    while (file && fgets(line, sizeof line, file))
        if ((at = strstr(line, ": runtime error: "))) {
            line[strcspn(line, "\n")] = 0;
            while (at > line && at[-1] != '/')
                at--;
            verdict_of("it has undefined behaviour: %.300s", at);
        }
    if (file)
        fclose(file);
}

_Noreturn void answer_finish(void)
{
    if (answer_here()) {
        fflush(stdout);
        send_pending();
        send_frame(DONE, "", 0);
        _exit(0);
    }
    receive(DONE, NULL, 0);
    waitpid(child, NULL, 0);
    child = 0;
    if (end_children())
        answer_verdict("it starts another process");
    check_printed();
    answer_verdict("right");
}

/* ---- both ---- */
/* Keeps standard output for the lesson's program if it shows numbers. All other output goes to a file. */
static void child_outputs(answer_job job)
{
    if (job == ANSWER_SHOWN)
        shown = dup(STDOUT_FILENO);
    else
        dup2(printed, STDOUT_FILENO);
    dup2(printed, STDERR_FILENO);
}

void answer_start(answer_job job, int answer, const char *prints, int limit_in_seconds)
{
    int both[2];
    seconds = limit_in_seconds, said = prints, began = now(), compared = job == ANSWER_CHECKED;
    prctl(PR_SET_DUMPABLE, 0), prctl(PR_SET_CHILD_SUBREAPER, 1);
    printed = open(prints, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
    if (printed < 0 || pipe(both) || (child = fork()) < 0)
        abort();
    if (child > 0) {
        from_child = both[0];
        close(both[1]), close(printed);
        return;
    }
    to_parent = both[1];
    child_outputs(job);
    load_answer(answer, job == ANSWER_DRAWN);
}
