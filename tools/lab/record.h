/* record.h - the record of a run as JSON, and its repetition. A function that returns false or NULL has
 * printed the error.
 *
 * Members: weft, date, command, options, planners, seeds, machine, environment, corpus, stopped; then three
 * lists of results, one object for each measurement: "counted" depends on corpus, plans and version;
 * "computed" has the same bits in each layout and number of threads, on one instruction set; "timed" has
 * milliseconds and seconds. seal: the SHA-256 of all other members. */
#ifndef WEFT_TOOLS_LAB_RECORD_H
#define WEFT_TOOLS_LAB_RECORD_H
#include "tools/lab/run.h"

enum { LAB_FORMAT = 1 };
extern const char *const lab_sections[LAB_SECTIONS];

/* ---- record.c ---- */
/* Notes the figures of plan i. */
void lab_note_plan(const lab_run *, int i);
/* The caller frees the record by json_decref. */
json_t *lab_make_record(const lab_run *, const char *command);
bool lab_write_record(const char *path, const json_t *);
/* sealed: the seal matches, so the record was not changed by hand. */
json_t *lab_read_record(const char *path, bool *sealed);
/* Fills options that are not set from a record, which must outlive them. */
bool lab_take_record(lab_asked *, const char *path, const json_t *);

/* ---- repeat.c ---- */
/* Returns whether the corpus that was read has the record's hash. */
bool lab_same_corpus(const lab_run *, const char *path, const json_t *record);
/* Prints the differences. Returns GOOD if all counted and computed numbers are equal to the bit. */
int lab_compare_records(const json_t *was, const json_t *now, bool sealed);
#endif
