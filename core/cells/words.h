/* words.h - the macros of cell bodies, for one number: plain loops, CUDA, tests. core/cpu/recurrent/cell.inc
 * has the same macros for vectors. The including file defines num, the number type, and CELL_FN, the function
 * specifiers.
 *
 * A body is three functions of one unit of one token. s [slots]: its sums, which become gates; backward the
 * gates, which become gradients of the sums. was, now [states]: the states before and after; 0 is h, 1 is c.
 * GATES computes the first n slots and c, OUT the other slots and h. BACK gets the gradients of h and c in d,
 * and replaces them by those of the previous h and c, without the part that goes through the product. A body
 * reads only the last of the previous states: h, or c if there are two. It has no memory and no branches on
 * numbers. */
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
#define RELU(x)            ((x) > 0 ? (x) : 0 * (x)) /* NaN for NaN */
#define STEP(x)            ((num)((x) > 0))
#define TANH(x)            tanh(x)
#ifndef SIGMOID                                  /* CUDA defines its own */
#define SIGMOID(x)         (1 / (1 + exp(-(x))))
#endif
#define SLOPE_TANH(y)      (1 - (y) * (y))
#define SIGMOID_BACK(g, y) ((g) * (y) * (1 - (y))) /* the gradient of x, if y = sigmoid(x) has gradient g */
#define TANH_BACK(g, y)    ((g) * (1 - (y) * (y)))
#endif
