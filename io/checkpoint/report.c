/* report.c - what a partial load finds, one line each; without a report the first finding is the error. */
#include <stdarg.h>
#include <string.h>
#include "core/locale.h"
#include "io/checkpoint/checkpoint.h"

static void append_line(weft_load_report *r, const char *word, const char *text)
{
    static const char more[] = "...\n";
    size_t at = strlen(r->text), n = strlen(word) + strlen(text) + 2;
    if (at + n + sizeof more <= sizeof r->text)
        snprintf(r->text + at, n + 1, "%s %s\n", word, text);
    else if (at < 4 || strcmp(r->text + at - 4, more))
        memcpy(r->text + at, more, sizeof more);
}

void weft__found(weft__h5 *h, weft_load_report *r, weft__finding what, const char *format, ...)
{
    static const char *const word[] = { "", "missing", "extra", "shape", "layer" };
    char text[512];
    if (weft__h5_status(h))
        return;
    va_list list;
    va_start(list, format);
    weft__plain_text(text, sizeof text, format, list);
    va_end(list);
    if (!r && what != WEFT__LOADED)
        weft__h5_fail(h, what == WEFT__OTHER_SHAPE ? WEFT_ESHAPE : WEFT_EFORMAT, "%s", text);
    if (!r)
        return;
    int *count[] = { &r->loaded, &r->missing, &r->extra, &r->other_shape, &r->other_shape };
    ++*count[what];
    if (what != WEFT__LOADED)
        append_line(r, word[what], text);
}
