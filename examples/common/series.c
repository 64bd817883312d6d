/* series.c - reads time series with classes; see series.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "program.h"
#include "series.h"

static int32_t class_number(problem *p, const char *name)
{
    int32_t c = 0;
    while (c < p->classes && strcmp(p->name[c], name))
        c++;
    if (c == MOST_CLASSES || strlen(name) >= sizeof *p->name)
        quit(1, "found class \"%.40s\"; expected at most %d classes with short names", name, MOST_CLASSES);
    if (c == p->classes)
        snprintf(p->name[p->classes++], sizeof *p->name, "%s", name);
    return c;
}

/* Adds a line, "1,2,3:4,5,6:LABEL", with the channels one after the other. */
static void add_series(problem *p, part *to, char *line, const char *path)
{
    weft_dataset *d = &to->series;
    char *label = strrchr(line, ':'), *at = line, *end;
    int64_t channels = 0, length = 0, n = 0, i = d->n++;
    double *x = memory(strlen(line), sizeof *x);
    if (!label)
        quit(1, "%s: found no \":\" in \"%.20s\"; expected numbers and a label", path, line);
    for (*label++ = 0; at < label; at = end + 1) {
        x[n++] = strtod(at, &end);
        if (end == at || !isfinite(x[n - 1]) || !strchr(",:", *end))
            quit(1, "%s: found \"%.20s\"; expected a finite number", path, at);
        if (*end == ',')
            continue;
        length = channels++ ? length : n;
        if (n != length * channels)
            quit(1, "%s: series %lld: expected channels of one length", path, (long long)d->n);
    }
    d->columns = p->train.series.columns ? p->train.series.columns : channels;
    if (d->columns != channels)
        quit(1, "%s: series %lld: found %lld channels; expected %lld", path, (long long)d->n,
             (long long)channels, (long long)d->columns);
    for (int64_t t = 0; t < length; t++)
        for (int64_t c = 0; c < channels; c++)
            d->rows[(d->offset[i] + t) * channels + c] = (weft_real)x[c * length + t];
    free(x);
    to->label[i] = class_number(p, label);
    d->len[i] = (int32_t)length;
    d->offset[i + 1] = d->offset[i] + length;
}

static void read_part(problem *p, part *to, const char *folder, const char *name, const char *kind)
{
    char path[4096], *text = NULL, *rest;
    size_t room = 0, lines = 1, numbers = 1;
    snprintf(path, sizeof path, "%s/%s/%s_%s.ts", folder, name, name, kind);
    FILE *file = fopen(path, "r");
    if (!file || getdelim(&text, &room, 0, file) < 0)
        quit(1, "%s: %s", path, file ? "found nothing" : strerror(errno));
    fclose(file);
    char *data = strstr(text, "@data"), *line = data ? strtok_r(data, "\r\n", &rest) : NULL;
    for (const char *c = line ? line + strlen(line) + 1 : ""; *c; c++) {
        lines += *c == '\n';
        numbers += *c == ',' || *c == ':';
    }
    to->series = (weft_dataset){ .len = memory(lines, sizeof *to->series.len),
                                 .offset = memory(lines + 1, sizeof *to->series.offset),
                                 .rows = memory(numbers, sizeof *to->series.rows) };
    to->label = memory(lines, sizeof *to->label);
    while (line && (line = strtok_r(NULL, "\r\n", &rest)))
        add_series(p, to, line, path);
    free(text);
    if (!to->series.n)
        quit(1, "%s: found no series; expected lines after @data", path);
}

problem read_problem(const char *folder, const char *name)
{
    problem p = { 0 };
    read_part(&p, &p.train, folder, name, "TRAIN");
    read_part(&p, &p.test, folder, name, "TEST");
    return p;
}
