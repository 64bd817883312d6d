/* api_packer.h - packs a stream of sequences into rows, with a buffer of a few open rows.
 * Plain memory and no context. Statuses and weft_plan_message are those of api_plan.h.
 *
 * Contents: a packer, its rows, its state for a checkpoint. */
#ifndef WEFT_API_PACKER_H
#define WEFT_API_PACKER_H
#include "api_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A packer takes sequences one at a time and hands out each row as soon as no sequence can join it.
 *
 *     weft_packer_add(p, id, length);
 *     while (weft_packer_next(p, &row))
 *         ..
 *
 * The rows are those of the planner for the whole list. The memory is that of the open rows, and of
 * final rows that the program has not taken. The program frees it by weft_packer_free. A packer
 * that is NULL has no rows; adding to it and setting its state are errors. */
typedef struct weft_packer weft_packer;
/* A sequence in a row. */
typedef struct { int64_t id, length; } weft_packed;
/* A final row: its first piece is in column 0, and each piece begins where the one before ends. */
typedef struct {
    int64_t number;              /* counts rows from 0 in the order of their first sequences */
    int64_t tokens;              /* cells with a token; the rest of the capacity is padding */
    int64_t n;                   /* number of pieces */
    const weft_packed *piece;    /* [n], valid until the next call with the packer */
} weft_packed_row;
/* Makes a packer. planner: next_fit, first_fit, best_fit or worst_fit. opts: capacity, limit and
 * open as for that planner; all but next_fit require open. After an error *out is NULL. The time of
 * weft_packer_add grows with open. Errors: another planner; another option. */
WEFT_API weft_status weft_packer_new(const weft_planner *planner, const weft_plan_opts *opts,
                                     weft_packer **out) WEFT_MUST_USE;
/* Adds a sequence. id: any number; the row has it back. length: 0 .. capacity; an empty sequence is
 * in no row. After an error the packer is unchanged. */
WEFT_API weft_status weft_packer_add(weft_packer *p, int64_t id, int64_t length) WEFT_MUST_USE;
/* Makes all open rows final, in the order of their numbers. weft_packer_add may follow. */
WEFT_API void weft_packer_end(weft_packer *p);
/* Takes the final row that has waited longest. Returns false if no row is final. */
WEFT_API bool weft_packer_next(weft_packer *p, weft_packed_row *row);
/* Returns the number of sequences that were added, empty ones included. */
WEFT_API int64_t weft_packer_count(const weft_packer *p);
/* Returns how many numbers the state of the packer has: 10, 2 for each row that was not taken, and
 * 2 for each of their pieces. */
WEFT_API int64_t weft_packer_state_size(const weft_packer *p);
/* Writes the state, for a checkpoint item of WEFT_I64: state [weft_packer_state_size]. A row that
 * weft_packer_next has handed out is not in it. */
WEFT_API void weft_packer_get_state(const weft_packer *p, int64_t *state);
/* Sets the packer to a state [n] of a packer of the same planner and options, also of an earlier
 * run. The rows that follow are those of an uninterrupted run. n may be too large, as weft_load
 * leaves it. After an error the packer is unchanged. Errors: WEFT_EFORMAT: a damaged state, or one
 * of another planner or other options. */
WEFT_API weft_status weft_packer_set_state(weft_packer *p, const int64_t *state,
                                           int64_t n) WEFT_MUST_USE;
/* Frees a packer. NULL is allowed. */
WEFT_API void weft_packer_free(weft_packer *p);

#ifdef __cplusplus
}
#endif
#endif
