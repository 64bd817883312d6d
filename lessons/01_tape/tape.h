/* tape.h - a tape of scalars. It stores each operation with its value, for a backward
 * pass. The forward pass is complete; the backward pass is the exercise of lesson 1. */
#ifndef WEFT_LESSON_01_TAPE
#define WEFT_LESSON_01_TAPE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef enum { LEAF, ADD, MUL, TANH, POWER, RELU } operation;

/* An entry: an operation, the earlier entries that it reads, its value, and the
 * derivative of the result by this value. */
typedef struct {
    operation op;
    int a, b;                       /* indices of its inputs; ADD and MUL use b */
    double exponent;                /* for POWER */
    double value, grad;
} node;

/* A tape: entries in the order of computation, inputs before their results. */
enum { MOST = 200 };
typedef struct {
    int n;
    node at[MOST];
} tape;

/* Returns the value of entry y, computed from its inputs. */
static inline double value_of(const tape *t, const node *y)
{
    double a = t->at[y->a].value, b = t->at[y->b].value;
    switch (y->op) {
    case ADD:   return a + b;
    case MUL:   return a * b;
    case TANH:  return tanh(a);
    case POWER: return pow(a, y->exponent);
    case RELU:  return a > 0 ? a : 0;
    default:    return y->value;
    }
}

/* Appends an entry and returns its index. */
static inline int push(tape *t, node y)
{
    if (t->n == MOST) {
        fprintf(stderr, "the tape is full\n");
        exit(1);
    }
    y.value = value_of(t, &y);
    t->at[t->n] = y;
    return t->n++;
}

/* Append a given number, or an operation on entries a and b. */
static inline int leaf(tape *t, double x)
{
    return push(t, (node){ .op = LEAF, .value = x });
}
static inline int pushed(tape *t, operation op, int a, int b, double exponent)
{
    return push(t, (node){ .op = op, .a = a, .b = b, .exponent = exponent });
}
static inline int add(tape *t, int a, int b) { return pushed(t, ADD, a, b, 0); }
static inline int mul(tape *t, int a, int b) { return pushed(t, MUL, a, b, 0); }
static inline int squash(tape *t, int a) { return pushed(t, TANH, a, 0, 0); }
static inline int relu(tape *t, int a) { return pushed(t, RELU, a, 0, 0); }
static inline int power(tape *t, int a, double k) { return pushed(t, POWER, a, 0, k); }
static inline int scale(tape *t, int a, double k) { return mul(t, a, leaf(t, k)); }
static inline int sub(tape *t, int a, int b) { return add(t, a, scale(t, b, -1)); }
static inline int quotient(tape *t, int a, int b) { return mul(t, a, power(t, b, -1)); }
#endif
