/* program.c - shared code of the examples: messages, memory, signals, files; see program.h. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "program.h"

bool first_of_ranks(void)
{
    static const char *const names[] = { "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID" };
    const char *rank = NULL;
    for (size_t i = 0; !rank && i < sizeof names / sizeof *names; i++)
        rank = getenv(names[i]);
    return !rank || atoi(rank) == 0;
}

_Noreturn void quit(int status, const char *format, ...)
{
    va_list arguments;
    if (status == 2 && !first_of_ranks()) {
        sleep(1);                                /* a launcher could end the first rank before it prints */
        exit(status);
    }
    va_start(arguments, format);
    fflush(stdout);
    fprintf(stderr, "%s: ", program);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(status);
}

void *memory(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size);
    if (!p)
        quit(1, "out of memory: %zu elements of %zu bytes", n, size);
    return p;
}

double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- signals ---- */
static volatile sig_atomic_t came;
static void stop(int signal) { came = signal; }

void obey_signals(void)
{
    struct sigaction once = { .sa_handler = stop, .sa_flags = (int)SA_RESETHAND };
    sigaction(SIGINT, &once, NULL);
    sigaction(SIGTERM, &once, NULL);
}

int signal_came(void) { return (int)came; }

bool stopping(const weft_parallel *ranks)
{
    bool many = weft_parallel_place_of(ranks).ranks > 1;
    return many ? weft_parallel_stopping(ranks) : signal_came();
}

void check_context(const weft *w, const char *format, ...)
{
    char doing[200];
    va_list arguments;
    if (weft_ok(w))
        return;
    va_start(arguments, format);
    vsnprintf(doing, sizeof doing, format, arguments);
    va_end(arguments);
    quit(1, "%s%s%s", doing, *doing ? ": " : "", weft_error_message(w));
}

void check_file(weft_status status)
{
    if (status != WEFT_OK)
        quit(1, "%s", weft_file_message());
}

weft *open_context(weft_device device, int64_t seed, int64_t threads)
{
    weft *w = weft_open(&(weft_opts){ .device = device, .seed = (uint64_t)seed, .threads = (int)threads });
    if (!weft_ok(w))
        quit(1, "%s", weft_error_message(w));
    return w;
}

bool is_there(const char *path) { return access(path, F_OK) == 0; }

void end_file(FILE *file, const char *path)
{
    bool ok = file && !ferror(file);
    if (!file || fclose(file) || !ok)
        quit(1, "%s: %s", path, strerror(errno));
}

const char *path_in(const char *folder, const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

double *numbers_of(weft_tensor *x)
{
    size_t n = (size_t)weft_numel(x);
    weft_real *values = memory(n, sizeof *values);
    double *numbers = memory(n, sizeof *numbers);
    weft_read(x, values, n * sizeof *values);
    for (size_t i = 0; i < n; i++)
        numbers[i] = (double)values[i];
    free(values);
    return numbers;
}

enum { TALL = 40, WIDE = 70, LABEL = 12 };

static double mean_of(const double *weights, int64_t columns, const int64_t row[2], const int64_t column[2])
{
    double sum = 0, n = 0;
    for (int64_t i = row[0]; i < row[1]; i++)
        for (int64_t k = column[0]; k < column[1]; k++, n++)
            sum += weights[i * columns + k];
    return sum / n;
}

/* Labels each fifth cell with its first element. */
static void label(char text[][LABEL], const char **labels, int n, int64_t elements, int64_t first)
{
    for (int i = 0; i < n; i++) {
        snprintf(text[i], LABEL, "%+d", (int)(first + i * elements / n));
        labels[i] = i % 5 ? NULL : text[i];
    }
}

void draw_matrix(const char *path, const char *title, int64_t rows, int64_t columns, int64_t first_row,
                 int64_t first_column, const double *weights)
{
    int tall = rows < TALL ? (int)rows : TALL, wide = columns < WIDE ? (int)columns : WIDE;
    double cells[TALL * WIDE], most = 0;
    char whole[300], text[2][WIDE][LABEL];
    const char *labels[2][WIDE];
    for (int r = 0; r < tall; r++)
        for (int c = 0; c < wide; c++) {
            const int64_t row[] = { r * rows / tall, (r + 1) * rows / tall };
            const int64_t column[] = { c * columns / wide, (c + 1) * columns / wide };
            cells[r * wide + c] = mean_of(weights, columns, row, column);
            most = fmax(most, cells[r * wide + c]);
        }
    for (int i = 0; most > 0 && i < tall * wide; i++)
        cells[i] /= most;
    label(text[0], labels[0], tall, rows, first_row);
    label(text[1], labels[1], wide, columns, first_column);
    snprintf(whole, sizeof whole, "%s; 1 is a weight of %.3f", title, most);
    check_file(weft_plot_heatmap(path, whole, tall, wide, cells, labels[0], labels[1], NULL));
}
