/* inspect.h - the tape as text, in pieces: what print and pictures of it are made of. */
#ifndef WEFT_INSPECT_H
#define WEFT_INSPECT_H
#include "autograd/fused.h"

/* A tape, and its leaves: what its operators take that none of them has made, in the order in which they are
 * first named. */
typedef struct weft__listing {
    const weft *w;
    const weft_tensor **leaf; int64_t leaves;
    int64_t *number;                             /* of each leaf without a path: given0, given1, .. */
    int64_t *slot, slots;                        /* hashed: 1 + the place in leaf; 0: free */
    int64_t named;                               /* so many leaves were named so far, by put_entry */
} weft__listing;

/* false: no memory; its end is due in either case */
bool weft__listing_begin(weft__listing *, const weft *);
void weft__listing_end(weft__listing *);
/* its place in leaf; -1: it is none of the leaves, but a result */
int64_t weft__leaf_of(const weft__listing *, const weft_tensor *);
/* "%3"; "%3.1" the second result; "net.out.weight"; "given0" */
void weft__put_source(FILE *, const weft__listing *, const weft_tensor *);
/* "[2, 3] packed"; of one element "[] = 1.5" */
void weft__put_form(FILE *, const weft_tensor *);
/* the line of an entry without its end; leaves with their form where they are named first */
void weft__put_entry(FILE *, weft__listing *, int64_t entry);
/* what the attributes of a call say, or "" */
enum { WEFT__ATTRIBUTES = 80 };
const char *weft__attributes(const weft_call *, char text[WEFT__ATTRIBUTES]);
/* the number of a tensor of one element; false: it has more, or cannot be read */
bool weft__number(const weft_tensor *, double *value);
#endif
