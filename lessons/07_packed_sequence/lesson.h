/* Lesson 7: the functions that you write. They do not need weft. */
#ifndef WEFT_LESSON_07
#define WEFT_LESSON_07
#include <stdint.h>

/* Describes the packed form of n sequences with lengths len [n]. The caller owns the
 * arrays, which are large enough. n and single lengths may be 0.
 *     steps                the longest length
 *     rows                 the sum of the lengths
 *     batch_sizes [steps]  number of sequences longer than t
 *     sorted [n]           the sequence in each place: the longest first, ties in
 *                          their order
 *     unsorted [n]         the place of each sequence
 *     sequence [rows]      the sequence of the token in each row
 *     position [rows]      its position in the sequence, from 0 */
typedef struct {
    int n, steps, rows;
    int32_t *batch_sizes, *sorted, *unsorted, *sequence, *position;
} packing;
void pack_index(int n, const int32_t *len, packing *p);

/* Copies packed data [rows], one number per token, to padded, which has n rows of
 * p->steps numbers each, one row after the other. Row s holds sequence s: its token t
 * is padded[s * p->steps + t], and the numbers after its last token, the pads, are 0.
 * Reads only batch_sizes and sorted of the arrays. */
void unpack(const packing *p, const double *data, double *padded);

/* Writes the conjugate partition: out[k] is the number of parts larger than k, for k =
 * 0 .. largest part - 1. Returns the count of numbers in out. For lengths the result is
 * batch_sizes. What is it for batch_sizes? */
int conjugate(int n, const int32_t *part, int32_t *out);
#endif
