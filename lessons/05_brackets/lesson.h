/* Lesson 5: the functions that you write. They do not need weft. */
#ifndef WEFT_LESSON_05
#define WEFT_LESSON_05

enum { UNITS = 4, DEPTH = 0, QUOTE = 1, OUTPUTS = 2 };

/* A record of a network that read n tokens. c and h [n, UNITS] are the states after
 * each token. target [n, OUTPUTS] has the right outputs: the depth of the brackets, and
 * 1 within quotes. The network's output is
 *     output o = bias[o] + sum over j of weight[o][j] h[j] */
typedef struct {
    int n;
    const double *c, *h, *target;
    double weight[OUTPUTS][UNITS], bias[OUTPUTS];
} record;

/* Returns Pearson's correlation of a[0], a[a_step], a[2 a_step], .. and the same of b,
 * n numbers each: from -1 to 1, or 0 if one of them is constant. */
double correlation(int n, const double *a, int a_step, const double *b, int b_step);

/* Returns the unit, 0 .. UNITS - 1, whose c has the largest correlation with the target
 * of this output, regardless of sign. */
int unit_for(const record *r, int output);

/* Returns the mean of |output - target| with the part of unit `cut` left out of the
 * output. -1 leaves out no unit. */
double error_without(const record *r, int output, int cut);
#endif
