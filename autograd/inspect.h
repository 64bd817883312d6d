/* inspect.h - functions that write parts of the tape as text, for weft_print_tape and weft_plot_tape. */
#ifndef WEFT_INSPECT_H
#define WEFT_INSPECT_H
#include "autograd/fused.h"

/* A tape and its leaves, in the order of their first use. A leaf is an input that no operator made. */
typedef struct weft__listing {
    const weft *w;
    const weft_tensor **leaf; int64_t leaves;
    int64_t *number;                             /* of each leaf without a path: given0, given1, .. */
    int64_t *slot, slots;                        /* hash table: 1 + index in leaf; 0: free */
    int64_t named;                               /* number of leaves that put_entry has written so far */
} weft__listing;

/* Lists the leaves. Returns false without memory. Call listing_end in either case. */
bool weft__listing_begin(weft__listing *, const weft *);
void weft__listing_end(weft__listing *);
/* Returns the tensor's index in leaf, or -1 for a result. */
int64_t weft__leaf_of(const weft__listing *, const weft_tensor *);
/* Writes the name of an input: "%3", "%3.1" for the second result, "net.out.weight" or "given0". */
void weft__put_source(FILE *, const weft__listing *, const weft_tensor *);
/* Writes shape and layout, "[2, 3] packed". A tensor of one element also gets its number, "[] = 1.5". */
void weft__put_form(FILE *, const weft_tensor *);
/* Writes the line of an entry without a newline. A leaf gets its form where it is first named. */
void weft__put_entry(FILE *, weft__listing *, int64_t entry);
/* Returns the attributes of a call as text, or "". */
enum { WEFT__ATTRIBUTES = 80 };
const char *weft__attributes(const weft_call *, char text[WEFT__ATTRIBUTES]);
/* Reads the number of a tensor of one element. Returns false if it has more, or cannot be read. */
bool weft__single_number(const weft_tensor *, double *value);
#endif
