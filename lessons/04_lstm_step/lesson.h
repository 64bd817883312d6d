/* Lesson 4: the functions that you write. */
#ifndef WEFT_LESSON_04
#define WEFT_LESSON_04

/* An LSTM of H units with inputs of I numbers. Matrices are stored row by row. PyTorch
 * calls w [4 H, I] weight_ih, u [4 H, H] weight_hh, bx [4 H] bias_ih (b below) and
 * bh [4 H] bias_hh (b' below). Rows 0 .. H - 1 belong to gate i, the next H to f, then
 * to g, then to o. */
typedef struct {
    int I, H;
    const double *w, *u, *bx, *bh;
} lstm;

/* The results of a step, [H] each: the four gates, the new cell c and the new output
 * h. */
typedef struct {
    double *i, *f, *g, *o, *c, *h;
} made;

/* Computes one step from x [I], and the cell c [H] and output h [H] of the step before:
 *     i = sigmoid(W_i x + b_i + U_i h + b'_i)     f, o: in the same way
 *     g = tanh(W_g x + b_g + U_g h + b'_g)
 *     c' = f * c + i * g
 *     h' = o * tanh(c') */
void step(const lstm *r, const double *x, const double *c, const double *h, made *to);

/* One unit that reads letters: 0 is (1, 0, 0, 0), 1 is (0, 1, 0, 0), then . and ?. */
enum { LETTERS = 4 };
enum { GATE_I, GATE_F, GATE_G, GATE_O };
typedef struct {
    double w[4][LETTERS], u[4], b[4];            /* a row for each gate */
} unit;

/* Sets the weights so that the unit is a memory of one bit: 1 and 0 store themselves, .
 * keeps the stored bit, ? shows it. h is tanh(1) = 0.76 at a ? while 1 is stored, and 0
 * at all other letters, with an error of at most 0.05 in texts of up to 60 letters. All
 * weights are 0 before the call. */
void flip_flop(unit *m);
#endif
