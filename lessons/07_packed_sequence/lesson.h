/* Lesson 7: the functions that you write, without weft. */
#ifndef WEFT_LESSON_07
#define WEFT_LESSON_07
#include <stdint.h>

/* How n sequences of lengths len [n] lie in memory when they are packed. The arrays are
 * the caller's, and large enough; n and single lengths may be 0.
 *     steps                the longest length
 *     rows                 the sum of the lengths
 *     batch_sizes [steps]  how many sequences are longer than t
 *     sorted [n]           the sequence in each place: the longest first, equals in
 *                          their order
 *     unsorted [n]         the place of each sequence
 *     sequence [rows]      which sequence the token in each row is of
 *     position [rows]      and which token of it, from 0 */
typedef struct {
    int n, steps, rows;
    int32_t *batch_sizes, *sorted, *unsorted, *sequence, *position;
} packing;
void pack_index(int n, const int32_t *len, packing *p);

/* data [rows], one number a token, packed, to padded [n, steps]: row s is sequence s;
 * pads are 0. It uses batch_sizes and sorted alone: they say everything. */
void unpack(const packing *p, const double *data, double *padded);

/* The conjugate partition: out[k] is how many of part [n] are more than k, for k = 0 ..
 * largest part - 1; returns how many that are. Of lengths it gives batch_sizes; of
 * batch_sizes? */
int conjugate(int n, const int32_t *part, int32_t *out);
#endif
