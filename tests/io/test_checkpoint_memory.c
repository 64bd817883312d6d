/* test_checkpoint_memory.c - tests failed allocations while a file is written or read. Each allocation of
 * weft fails once. */
#include <sys/resource.h>
#include <sys/wait.h>
#include "checkpoint.h"
#include "tests/failing_malloc.h"

static const char *checkpoint_path, *dict_path;
static int32_t number[2] = { 1, 2 };
static weft_checkpoint_item item = { "number", WEFT_I32, number, 2 };

static weft_status saves(const model *k)    { return weft_save(checkpoint_path, k->m, k->o, &item, 1); }
static weft_status loads(const model *k)    { return weft_load(checkpoint_path, k->m, k->o, &item, 1); }
static weft_status items(const model *k)
{
    (void)k;
    return weft_load(checkpoint_path, NULL, NULL, &item, 1);
}
static weft_status matching(const model *k) { return weft_load_matching(checkpoint_path, k->m, NULL); }
static weft_status exports(const model *k) { return weft_save_weights(dict_path, k->m); }
static weft_status imports(const model *k) { return weft_load_weights(dict_path, k->m, NULL, NULL); }
static weft_status size(const model *k)
{
    return (void)k, weft_checkpoint_item_size(checkpoint_path, "number") == 2 ? WEFT_OK : WEFT_ENOMEM;
}

FORMAT_TEST(checkpoint_memory, survives_failure_of_each_allocation)
{
    static weft_status (*const call[])(const model *) = { saves,   loads,   items, matching,
                                                          exports, imports, size };
    model a = model_in(w), b = model_new(2);
    checkpoint_path = in_format("a");
    dict_path = in_format("dict");
    train(&a, 1);
    DOES(saves(&a));
    DOES(exports(&a));
    content c = read_bytes(checkpoint_path), d = read_bytes(dict_path);
    const char *checkpoint = put_bytes("checkpoint", c.at, c.n), *dict = put_bytes("weights", d.at, d.n);
    uint32_t one = state_of(&a), two = state_of(&b);
    for (int i = 0; i < COUNT(call); i++) {
        weft_status s;
        FOR_EACH_FAILURE(s, call[i](&b)) {
            nothing_is_open();
            cr_assert_eq(s, WEFT_ENOMEM, "call %d, allocation %ld: %s: %s", i, failing.at,
                         weft_status_name(s), weft_file_message());
            cr_assert(state_of(&b) == two && weft_ok(b.w));
            cr_assert(equal_files(checkpoint_path, checkpoint) && equal_files(dict_path, dict));
        }
        DOES(s);
        nothing_is_open();
        cr_assert(!COUNTED || failing.at > 2, "call %d makes only %ld allocations", i, failing.at - 1);
        c = read_bytes(checkpoint);
        d = read_bytes(dict);
        write_bytes(checkpoint_path, c.at, c.n);
        write_bytes(dict_path, d.at, d.n);
        two = state_of(&b);
    }
    cr_assert_eq(two, one);                      /* they did work in the end */
    cr_assert_eq(files_in_folder(), 4);
    CLEAN(b.w);
}

/* ---- libhdf5's own allocations, which cannot fail one by one: see docs/design/checkpoints.md ---- */
static size_t address_space(void)                /* of this process, in bytes */
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    cr_assert(f && fscanf(f, "%ld", &pages) == 1);
    fclose(f);
    return (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
}

static int in_little_memory(const model *k, size_t more, bool load)
{
    size_t limit = address_space();
    setrlimit(RLIMIT_AS, &(struct rlimit){ limit, RLIM_INFINITY });
    for (size_t block = 1 << 16; block >= 16; block /= 2)        /* the memory that the heap still holds */
        while (malloc(block))
            ;
    setrlimit(RLIMIT_AS, &(struct rlimit){ limit + more, RLIM_INFINITY });
    weft_status s = load ? loads(k) : saves(k);
    return s == WEFT_ENOMEM ? 1 : s ? 2 : 0;
}

FILE_TEST(checkpoint_memory, memory_limit_gives_an_error)
{
    model a = model_new(1);
    int told[2][3] = { { 0 } };
    checkpoint_path = in_folder("a.h5");
    /* this process has never used libhdf5, and neither have the children */
    pid_t first = fork();
    if (!first)
        _exit(saves(&a) ? 1 : 0);
    waitpid(first, NULL, 0);
    for (int load = 0; load < 2; load++)
        for (size_t more = 0; more < 24 << 20 && !CHECK_SANITIZED;
             more += more < 2 << 20 ? 128 << 10 : 1 << 20) {
            int status;
            pid_t child = fork();
            if (!child)
                _exit(in_little_memory(&a, more, load));
            waitpid(child, &status, 0);
            cr_assert(WIFEXITED(status) && WEXITSTATUS(status) < 2, "%s with %zu KB: signal %d, status %d",
                      load ? "loads" : "saves", more >> 10, WTERMSIG(status), WEXITSTATUS(status));
            told[load][WEXITSTATUS(status)]++;
        }
    cr_assert(CHECK_SANITIZED || (told[0][0] && told[0][1] && told[1][0] && told[1][1]),
              "%d, %d saved, not; %d, %d loaded, not", told[0][0], told[0][1], told[1][0], told[1][1]);
    CLEAN(a.w);
}
