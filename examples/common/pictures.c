/* pictures.c - see pictures.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "pictures.h"
#include "program.h"

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

/* ---- a large matrix ---- */
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
