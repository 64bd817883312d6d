/* hunt.h - random programs of public operators and layers, each computed in many ways that must not change a
 * bit of what a sequence gives or gets: layouts, orders and splits of the batch, threads, lean layers, on
 * every instruction set that the machine has.
 *
 * A program is data: sequences and a list of steps, each an operator and a number from which its sizes and
 * options follow. So a part can be left out, and what remains is a program. */
#ifndef WEFT_HUNT_H
#define WEFT_HUNT_H
#include "weft.h"

enum { HUNT_STEPS = 7, HUNT_SEQUENCES = 64, HUNT_TEXT = 1200, HUNT_STATE = 5 };

/* other: the value that is its second operand */
typedef struct hunt_step { int op; uint64_t seed; int other; } hunt_step;
/* how gradients are asked for; TWICE: of a penalty on them */
typedef enum { HUNT_ONCE, HUNT_RECORDED, HUNT_TWICE } hunt_walk;
typedef struct hunt_program {
    uint64_t seed; hunt_walk walk; bool large;
    /* the id says what numbers a sequence has */
    int n; int32_t len[HUNT_SEQUENCES]; int64_t id[HUNT_SEQUENCES];
    /* of the input [tokens, width]; a state [sequences, HUNT_STATE] is the other input */
    int64_t width;
    int steps; hunt_step step[HUNT_STEPS];
} hunt_program;

typedef enum { HUNT_CONCAT, HUNT_PACKED, HUNT_LEFT, HUNT_RIGHT, HUNT_ROWS } hunt_layout;
/* parts: 0 and 1: the batch whole */
typedef struct hunt_way {
    const char *name;
    int threads;
    hunt_layout layout;
    bool shuffled, lean;
    int parts;
} hunt_way;

/* What a program gives: numbers for each token of all sequences end to end, and for each sequence. */
typedef struct hunt_result {
    int64_t tokens, width; weft_real *y, *dx, *ds;                             /* y [tokens, width of y] */
    char text[HUNT_TEXT], failure[400];          /* the operators as they ran; "" if nothing failed */
} hunt_result;

/* What an operator of the table has at hand while a program runs. */
typedef struct hunt_scene {
    weft *w; weft_module *m; uint64_t random;    /* of the step */
    weft_tensor *x, *other, *state, *extra;      /* extra: what is added to the loss, of rank 0 */
    const hunt_program *p;
    char name[24], text[HUNT_TEXT]; size_t at;
} hunt_scene;
typedef struct hunt_operator { const char *name; weft_tensor *(*run)(hunt_scene *); } hunt_operator;
/* each ends with a NULL name */
extern const hunt_operator hunt_operators[], hunt_layers[], hunt_planted[];

/* hunt_random.c: numbers from one number; a whole one below n, and a hash. */
uint64_t hunt_hash(uint64_t a, uint64_t b);
int64_t  hunt_below(hunt_scene *s, int64_t n);
bool     hunt_one_in(hunt_scene *s, int64_t n);
/* For operators: a note on what was chosen, behind its name; the width of a value; `t` as wide as needed, by
 * a linear layer if it is not; a name for a second layer; adds the sum of squares to the loss. */
void     hunt_note(hunt_scene *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
int64_t  hunt_width(const weft_tensor *t);
weft_tensor *hunt_as_wide(hunt_scene *s, weft_tensor *t, int64_t width, const char *part);
const char  *hunt_name(hunt_scene *s, const char *part);
void     hunt_count(hunt_scene *s, weft_tensor *t);
/* hunt_program.c: the program of a number; what is left without a step, without sequences from .. from + n
 * - 1. */
/* puts an operator into the table that looks at its neighbours */
void     hunt_plant(bool on);
int      hunt_operators_known(void);
const hunt_operator *hunt_operator_of(const hunt_step *s);
hunt_program hunt_program_of(uint64_t seed);
hunt_program hunt_without_step(const hunt_program *p, int step);
hunt_program hunt_without_sequences(const hunt_program *p, int from, int n);
/* hunt_run.c: computes the program in that way; free by hunt_end. */
hunt_result hunt_run(const hunt_program *p, const hunt_way *way);
void        hunt_end(hunt_result *r);
/* hunt_compare.c: whether two results of a program differ, and then how, in words; the same after running
 * it in both ways. */
bool hunt_results_differ(const hunt_program *p, const hunt_result *a, const hunt_result *b, char *why,
                         size_t size);
bool hunt_differs(const hunt_program *p, const hunt_way *first, const hunt_way *way, char *why, size_t size);
/* The smallest program that still differs. */
hunt_program hunt_shrunk(hunt_program p, const hunt_way *first, const hunt_way *way);
#endif
