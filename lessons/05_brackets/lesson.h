/* Lesson 5: the functions that you write, without weft. */
#ifndef WEFT_LESSON_05
#define WEFT_LESSON_05

enum { UNITS = 4, DEPTH = 0, QUOTE = 1, OUTPUTS = 2 };

/* What was read off a net while it read n tokens: of each token the state, c and h
 * [n, UNITS], and what would have been right, target [n, OUTPUTS]: the depth of
 * brackets, and 1 within quotes. The net's answer is
 *     output o = bias[o] + sum over j of weight[o][j] h[j] */
typedef struct {
    int n;
    const double *c, *h, *target;
    double weight[OUTPUTS][UNITS], bias[OUTPUTS];
} record;

/* Pearson's correlation of a[0], a[a_step], a[2 a_step], .. and b in the same way, n
 * numbers of each: from -1 to 1; 0 if one of them does not change. */
double correlation(int n, const double *a, int a_step, const double *b, int b_step);

/* The unit, 0 .. UNITS - 1, whose c goes with the target of this output, up or down: of
 * the largest correlation, whatever its sign. */
int unit_for(const record *r, int output);

/* The mean of |answer - target| of an output if unit `cut` has no part in the answer;
 * -1: all have. */
double error_without(const record *r, int output, int cut);
#endif
