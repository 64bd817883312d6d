/* watch.c - writes the input file of a reader, and limits its time and memory (fuzz.h). */
#include <fcntl.h>
#include <sanitizer/allocator_interface.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include "fuzz.h"

static long long live, most, before;             /* bytes allocated by weft */
static long resident;                            /* peak of the process in KiB */
static long long given, taken;                   /* files; taken: accepted */
static size_t file_size;
static double begun;

/* ---- memory ---- */
/* The linker (--wrap) redirects weft's allocations, which all count. libhdf5 may allocate the size that a
 * file declares and free it if the file is shorter, so only its touched memory counts. */
void *__real_malloc(size_t), *__real_calloc(size_t, size_t), *__real_realloc(void *, size_t),
    *__wrap_malloc(size_t), *__wrap_calloc(size_t, size_t), *__wrap_realloc(void *, size_t);
void __real_free(void *), __wrap_free(void *);

static void asked(size_t n)
{
    live += (long long)n;
    most = live > most ? live : most;
}
static void given_back(void *p) { live -= p ? (long long)__sanitizer_get_allocated_size(p) : 0; }

void *__wrap_malloc(size_t n)           { asked(n); return __real_malloc(n); }
void *__wrap_calloc(size_t n, size_t m) { asked(n * m); return __real_calloc(n, m); }
void  __wrap_free(void *p)              { given_back(p); __real_free(p); }
void *__wrap_realloc(void *p, size_t n)
{
    given_back(p);
    asked(n);
    return __real_realloc(p, n);
}

/* ---- the file ---- */
static char path[300];

static void end(void)
{
    unlink(path);
    fprintf(stderr, "\ntaken: %lld of %lld\n", taken, given);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const char *folder = getenv("TMPDIR");
    (void)argc, (void)argv;
    snprintf(path, sizeof path, "%s/weft_fuzz.%ld", folder ? folder : "/tmp", (long)getpid());
    atexit(end);
    return 0;
}

const char *fuzz_file(const uint8_t *bytes, size_t n)
{
    int f = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (f < 0 || pwrite(f, bytes, n, 0) != (ssize_t)n || ftruncate(f, (off_t)n) || close(f))
        fuzz_found("trouble", "%s cannot be written", path);
    return path;
}

/* ---- around a call ---- */
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void fuzz_found(const char *kind, const char *format, ...)
{
    va_list list;
    fprintf(stderr, "\nfound: %s: ", kind);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
    end();
    abort();
}

static long most_resident(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss;
}

void fuzz_watch(size_t n)
{
    file_size = n;
    resident = most_resident();
    before = most = live;
    begun = now();
}

const char *(*fuzz_message)(void) = weft_file_message;
int fuzz_times = 20;

void fuzz_watched(weft_status status)
{
    double seconds = now() - begun;
    long long bytes = most - before, touched = 1024ll * (most_resident() - resident);
    if (H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL))
        fuzz_found("trouble", "%d handles of libhdf5 are left open",
                   (int)H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL));
    given++;
    taken += status == WEFT_OK;
    bytes = touched > bytes ? touched : bytes;
    if (bytes > fuzz_times * (long long)file_size + (64 << 20))
        fuzz_found("too large", "%lld bytes of memory for a file of %zu", bytes, file_size);
    if (seconds > 1)
        fuzz_found("hang", "%.2f s for a file of %zu bytes", seconds, file_size);
    if (status && !*fuzz_message())
        fuzz_found("silent change", "status %d without a message", (int)status);
}
