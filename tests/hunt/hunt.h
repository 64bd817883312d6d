/* hunt.h - random programs of public operators and layers, run in many configurations that must not change a
 * bit of a sequence's results and gradients: layouts, orders and splits of the batch, threads, lean layers.
 *
 * A program is data: sequences and a list of steps. A step is an operator and a seed for its sizes and
 * options. So a program without some of its parts is still a program. */
#ifndef WEFT_HUNT_H
#define WEFT_HUNT_H
#include "weft.h"

enum { HUNT_STEPS = 7, HUNT_SEQUENCES = 64, HUNT_TEXT = 1200, HUNT_STATE = 5 };

/* other: index of the value that is its second operand */
typedef struct hunt_step { int op; uint64_t seed; int other; } hunt_step;
/* how gradients are computed; TWICE: also those of a penalty on gradients */
typedef enum { HUNT_ONCE, HUNT_RECORDED, HUNT_TWICE } hunt_walk;
typedef struct hunt_program {
    uint64_t seed; hunt_walk walk; bool large;
    /* the id determines the numbers of a sequence */
    int n; int32_t len[HUNT_SEQUENCES]; int64_t id[HUNT_SEQUENCES];
    /* Inputs are [tokens, width] and a state [sequences, HUNT_STATE]. */
    int64_t width;
    int steps; hunt_step step[HUNT_STEPS];
} hunt_program;

typedef enum { HUNT_CONCAT, HUNT_PACKED, HUNT_LEFT, HUNT_RIGHT, HUNT_ROWS } hunt_layout;
/* parts: number of batches; 0 and 1: one batch */
typedef struct hunt_way {
    const char *name;
    int threads;
    hunt_layout layout;
    bool shuffled, lean;
    int parts;
} hunt_way;

/* Results: numbers for each token of all sequences, concatenated, and for each sequence. */
typedef struct hunt_result {
    int64_t tokens, width; weft_real *y, *dx, *ds;                             /* y [tokens, width of y] */
    char text[HUNT_TEXT], failure[400];          /* the operators that ran; "" without a failure */
} hunt_result;

/* Arguments of an operator. */
typedef struct hunt_scene {
    weft *w; weft_module *m; uint64_t random;    /* of the step */
    weft_tensor *x, *other, *state, *extra;      /* extra: a scalar that is added to the loss */
    const hunt_program *p;
    char name[24], text[HUNT_TEXT]; size_t at;
} hunt_scene;
typedef struct hunt_operator { const char *name; weft_tensor *(*run)(hunt_scene *); } hunt_operator;
/* Each ends with a NULL name. */
extern const hunt_operator hunt_operators[], hunt_layers[], hunt_planted[];

/* hunt_program.c: a hash, and random integers below n. */
uint64_t hunt_hash(uint64_t a, uint64_t b);
int64_t  hunt_below(hunt_scene *s, int64_t n);
bool     hunt_one_in(hunt_scene *s, int64_t n);
/* For operators. hunt_note appends the chosen options to the text. hunt_as_wide changes the width of t by a
 * linear layer if necessary. hunt_name names a second layer. hunt_count adds the sum of squares to the
 * loss. */
void     hunt_note(hunt_scene *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
int64_t  hunt_width(const weft_tensor *t);
weft_tensor *hunt_as_wide(hunt_scene *s, weft_tensor *t, int64_t width, const char *part);
const char  *hunt_name(hunt_scene *s, const char *part);
void     hunt_count(hunt_scene *s, weft_tensor *t);
/* hunt_program.c: the program of a seed, and programs without a step or without sequences from .. from + n -
 * 1. hunt_plant adds an operator that reads its neighbour's rows. */
void     hunt_plant(bool on);
int      hunt_operators_known(void);
const hunt_operator *hunt_operator_of(const hunt_step *s);
hunt_program hunt_program_of(uint64_t seed);
hunt_program hunt_without_step(const hunt_program *p, int step);
hunt_program hunt_without_sequences(const hunt_program *p, int from, int n);
/* hunt_run.c: runs the program in a configuration. hunt_end frees the result. */
hunt_result hunt_run(const hunt_program *p, const hunt_way *way);
void        hunt_end(hunt_result *r);
/* hunt_compare.c: compares two results of a program and describes the first difference in why. hunt_differs
 * also runs both configurations. */
bool hunt_results_differ(const hunt_program *p, const hunt_result *a, const hunt_result *b, char *why,
                         size_t size);
bool hunt_differs(const hunt_program *p, const hunt_way *first, const hunt_way *way, char *why, size_t size);
/* Returns the smallest program that still differs. */
hunt_program hunt_shrunk(hunt_program p, const hunt_way *first, const hunt_way *way);
#endif
