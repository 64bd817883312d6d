/* windows.h - the struct of windows, shared by the files that use it. */
#ifndef WEFT_WINDOWS_H
#define WEFT_WINDOWS_H
#include "rnn/forecast/series/features.h"

struct weft_windows {
    weft *w;
    const weft_features *x;                      /* as fitted when the windows were made */
    weft_features copy;
    weft_windows_opts o;
    char name[32];
    weft__prepared p;
    weft_stream *shorten, *noise;
    int64_t n, skipped;
    int64_t *first;                              /* [series + 1] index of each series' first window */
    int32_t *lengths;                            /* [n] */
};

/* Returns window i, which must exist. */
weft_window weft__window(const weft_windows *v, int64_t i);
/* Checks that a window has that number, or fails the context. */
bool weft__has_window(const weft_windows *v, int64_t i);
#endif
