/* windows.h - what the parts of windows know of each other. */
#ifndef WEFT_WINDOWS_H
#define WEFT_WINDOWS_H
#include "rnn/forecast/series/features.h"

struct weft_windows {
    weft *w;
    const weft_features *x;                      /* as they were fitted when the windows were made */
    weft_features copy;
    weft_windows_opts o;
    char name[32];
    weft__prepared p;
    weft_stream *shorten, *noise;
    int64_t n, skipped;
    int64_t *first;                              /* [series + 1] the number of each one's first window */
    int32_t *lengths;                            /* [n] */
};

/* The window of that number; it must be there. */
weft_window weft__window(const weft_windows *v, int64_t i);
/* Whether the number is a window's; else the context fails. */
bool weft__has_window(const weft_windows *v, int64_t i);
#endif
