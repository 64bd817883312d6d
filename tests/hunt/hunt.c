/* hunt.c - searches for results whose bits depend on layout, batch, order or threads.
 *
 * `hunt PROGRAMS SEED` runs random programs (hunt.h), each in all configurations below and on each
 * instruction set of this machine. It compares outputs and input gradients sequence by sequence. For a
 * difference it prints the seed, the configuration and the smallest program that still differs. The last line
 * has the counts; the exit status is 0 without differences. `--isa NAME` uses one instruction set. `--seed N`
 * runs the program of a reported difference. `--planted` plants an operator that the hunt must find. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "hunt.h"

/* All others are compared with the first. Gradients of gradients are compared only within a layout, because
 * conversions between layouts change the order of their sums. */
static const hunt_way ways[] = {
    { "concat",                      1, HUNT_CONCAT, false, false, 0 },
    { "two threads",                 2, HUNT_CONCAT, false, false, 0 },
    { "five threads, other order",   5, HUNT_CONCAT, true,  false, 0 },
    { "packed",                      1, HUNT_PACKED, false, false, 0 },
    { "packed, five threads, lean",  5, HUNT_PACKED, false, true,  0 },
    { "padded left, other order",    2, HUNT_LEFT,   true,  false, 0 },
    { "padded right",                1, HUNT_RIGHT,  false, false, 0 },
    { "rows",                        1, HUNT_ROWS,   false, false, 0 },
    { "rows, other order, lean",     2, HUNT_ROWS,   true,  true,  0 },
    { "lean",                        1, HUNT_CONCAT, false, true,  0 },
    { "in two halves",               1, HUNT_CONCAT, false, false, 2 },
    { "each alone, packed",          2, HUNT_PACKED, false, false, HUNT_SEQUENCES },
};
enum { WAYS = sizeof ways / sizeof *ways, PACKED = 3, ROWS = 7, LANES = 4 };
static const hunt_way *first_for(const hunt_program *p, const hunt_way *way)
{
    static const int same_layout[] = { [HUNT_CONCAT] = 0,
                                       [HUNT_PACKED] = PACKED,
                                       [HUNT_LEFT] = PACKED,
                                       [HUNT_RIGHT] = PACKED,
                                       [HUNT_ROWS] = ROWS };
    return &ways[p->walk == HUNT_TWICE ? same_layout[way->layout] : 0];
}

typedef struct tally { long programs, runs, differences; } tally;
static struct { const char *isa, *seed; bool planted; } asked;
static const char *isa[8];                       /* of this machine */

/* Removes variables that override the configurations, so that products use weft's kernels. */
static void find_isas(void)
{
    unsetenv("WEFT_THREADS"), unsetenv("WEFT_DEVICE"), unsetenv("WEFT_GEMM");
    static const char *const known[] = { "ref", "generic", "avx2", "avx512" };
    int n = 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        setenv("WEFT_ISA", known[i], 1);
        weft *w = weft_open(&(weft_opts){ .device = WEFT_CPU, .threads = 1 });
        if (weft_ok(w) && (!asked.isa || !strcmp(asked.isa, known[i])))
            isa[n++] = known[i];
        weft_close(w);
    }
}

static void describe(const hunt_program *p)
{
    hunt_result r = hunt_run(p, &ways[0]);
    printf("    %d sequences of", p->n);
    for (int s = 0; s < p->n; s++)
        printf(" %d", p->len[s]);
    printf(", width %d%s: %s\n", (int)p->width,
           p->walk == HUNT_TWICE    ? ", second derivatives" :
           p->walk == HUNT_RECORDED ? ", recorded" :
                                      "",
           r.text);
    hunt_end(&r);
}

static void tell(const hunt_program *p, const char *on, const hunt_way *way, const char *why)
{
    char text[600];
    printf("seed %llu, %s, %s: %s\n", (unsigned long long)p->seed, on, way->name, why);
    describe(p);
    hunt_program q = hunt_shrunk(*p, first_for(p, way), way);
    if (hunt_differs(&q, first_for(p, way), way, text, sizeof text))
        printf("  the smallest that differs: %s\n", text), describe(&q);
    fflush(stdout);
}

/* Runs a program on every instruction set. If the reference configuration fails, it counts as a
 * difference. */
static void try(uint64_t seed, tally *t)
{
    hunt_program p = hunt_program_of(seed);
    char why[600];
    t->programs++;
    for (int i = 0; isa[i]; i++) {
        setenv("WEFT_ISA", isa[i], 1);
        hunt_result r[WAYS];
        for (int k = 0; k < WAYS; k++)
            r[k] = hunt_run(&p, &ways[k]);
        for (int k = 0; k < WAYS; k++) {
            bool differ = hunt_results_differ(&p, &r[first_for(&p, &ways[k]) - ways], &r[k], why, sizeof why);
            t->runs++, t->differences += differ;
            if (differ)
                tell(&p, isa[i], &ways[k], why);
        }
        for (int k = 0; k < WAYS; k++)
            hunt_end(&r[k]);
    }
}

static tally lane(uint64_t seed, long programs, long first, long step)
{
    tally t = { 0 };
    for (long i = first; i < programs; i += step)
        try(seed * 1000003 + (uint64_t)i, &t);
    return t;
}

/* Runs the programs in several processes. A crashed process counts as a difference. */
static tally all(uint64_t seed, long programs)
{
    long lanes = sysconf(_SC_NPROCESSORS_ONLN);
    int pipes[LANES][2];
    tally sum = { 0 };
    lanes = lanes < 1 ? 1 : lanes > LANES ? LANES : lanes;
    for (long i = 0; i < lanes; i++) {
        if (pipe(pipes[i]))
            return (tally){ .differences = 1 };
        if (fork() == 0) {
            tally t = lane(seed, programs, i, lanes);
            _exit(write(pipes[i][1], &t, sizeof t) != sizeof t);
        }
        close(pipes[i][1]);
    }
    for (long i = 0; i < lanes; i++) {
        tally t;
        if (read(pipes[i][0], &t, sizeof t) != sizeof t)
            t = (tally){ .differences = 1 }, printf("a process of the hunt has died\n");
        sum = (tally){ sum.programs + t.programs, sum.runs + t.runs, sum.differences + t.differences };
        close(pipes[i][0]);
    }
    while (wait(NULL) > 0)
        ;
    return sum;
}

int main(int argc, char **argv)
{
    long number[2] = { 300, 1 };
    int given = 0;
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--planted"))
            asked.planted = true;
        else if (!strcmp(argv[i], "--isa") && i + 1 < argc)
            asked.isa = argv[++i];
        else if (!strcmp(argv[i], "--seed") && i + 1 < argc)
            asked.seed = argv[++i], number[0] = 1;
        else if (given < 2)
            number[given++] = atol(argv[i]);
    hunt_plant(asked.planted);
    find_isas();
    tally t = { 0 };
    if (asked.seed)
        try(strtoull(asked.seed, NULL, 10), &t);
    else
        t = all((uint64_t)number[1], number[0]);
    printf("hunt: %ld programs of %d operators and layers, %d configurations on", t.programs,
           hunt_operators_known(), WAYS);
    for (int i = 0; isa[i]; i++)
        printf(" %s", isa[i]);
    printf(", %ld differences\n", t.differences);
    return t.differences != 0 || t.programs != number[0] || t.runs == 0;
}
