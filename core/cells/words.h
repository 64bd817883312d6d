/* words.h - what a body of a cell is written in, for one number: the plain loops, CUDA, tests.
 * core/cpu/recurrent/cell.inc has the same words for vectors. The file that includes it defines num, and
 * CELL_FN, what a function begins with.
 *
 * A body is three functions of one unit of one token. s [slots]: its sums, which become gates, and on the way
 * back the gradients of the sums. was, now [states]: the states before and after; 0 is h, 1 is c. GATES
 * finishes the first n slots and c, OUT the other slots and h. BACK gets in d what arrived at h and c, and
 * leaves in it what goes on to the states before by other ways than the product: d[0] is that of h, d[1] that
 * of c. Of the states before a body reads only the last one: h, or c where there are two. No `if` on
 * numbers, no memory of its own. */
#define GATES(name, n)         \
    enum { name##_first = n }; \
    CELL_FN void name##_gates(CELL_MAYBE num *s, CELL_MAYBE const num *was, CELL_MAYBE num *now)
#define OUT(name)      CELL_FN void name##_out(num *s, CELL_MAYBE const num *was, num *now)
#define BACK(name) \
    CELL_FN void name##_back(num *s, CELL_MAYBE const num *was, CELL_MAYBE const num *now, num *d)
#define CELL_MAYBE     __attribute__((unused))
#ifndef CELL_VECTORS
#define SET(x)             ((num)(x))
#define FMA(a, b, c)       ((a) * (b) + (c))
#define RELU(x)            ((x) > 0 ? (x) : 0 * (x))              /* of NaN it is NaN */
#define STEP(x)            ((num)((x) > 0))
#define TANH(x)            tanh(x)
#ifndef SIGMOID                                  /* CUDA has one of its own */
#define SIGMOID(x)         (1 / (1 + exp(-(x))))
#endif
#define SLOPE_TANH(y)      (1 - (y) * (y))
#define SIGMOID_BACK(g, y) ((g) * (y) * (1 - (y))) /* the gradient g through y = sigmoid(x), to x */
#define TANH_BACK(g, y)    ((g) * (1 - (y) * (y)))
#endif
