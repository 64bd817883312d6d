/* options.h - the options of a subcommand as a table, parsed from the arguments and listed by --help. */
#ifndef WEFT_TOOLS_OPTIONS_H
#define WEFT_TOOLS_OPTIONS_H
#include <stddef.h>
#include "tools/tools.h"

/* FLAG: sets a bool. TEXT: a const char *. WHOLE: an int64_t in 1 .. most. REAL: a double above 0 and at most
 * `most`. OWN: `add` takes the value; after an error it prints it and returns false. */
typedef enum { OPTION_FLAG, OPTION_TEXT, OPTION_WHOLE, OPTION_REAL, OPTION_OWN } option_kind;
/* value: the value's name in the help; NULL for a flag. once: a second use is an error; otherwise the last
 * one counts. is_value: set if the value is optional; returns whether the next argument is one. otherwise:
 * the value if it is missing. */
typedef struct option {
    const char *name, *value, *about;
    option_kind kind;
    size_t field;
    double most;
    bool (*add)(void *to, const char *value);
    bool once;
    const char *ending;                          /* of a file to write; NULL: any */
    bool (*is_value)(const char *);
    const char *otherwise;
} option;

#define IS_FLAG(n, f, text)           { .name = n, .about = text, .kind = OPTION_FLAG, .field = f }
#define IS_TEXT(n, v, f, text) \
    { .name = n, .value = v, .about = text, .kind = OPTION_TEXT, .field = f }
#define IS_TEXT_ONCE(n, v, f, text) \
    { .name = n, .value = v, .about = text, .kind = OPTION_TEXT, .field = f, .once = true }
#define IS_OUTPUT(n, e, f, text) \
    { .name = n, .value = "FILE" e, .about = text, .kind = OPTION_TEXT, .field = f, .ending = e }
#define IS_WHOLE(n, f, largest, text) \
    { .name = n, .value = "N", .about = text, .kind = OPTION_WHOLE, .field = f, .most = largest }
#define IS_REAL(n, v, f, largest, text) \
    { .name = n, .value = v, .about = text, .kind = OPTION_REAL, .field = f, .most = largest }
#define IS_OWN(n, v, function, text) \
    { .name = n, .value = v, .about = text, .kind = OPTION_OWN, .add = function }

/* Reads the options among the arguments into the fields of `to`; "--" ends them. Moves the other arguments to
 * the front of argv and sets *argc to their number. Returns GOOD or USAGE. */
int read_options(const subcommand *, void *to, int *argc, char **argv);
/* Reads a whole number in least .. most. Returns false, without a message, for another text. */
bool parse_whole(const char *text, int64_t least, int64_t most, int64_t *number);
/* Sets the field of one option. Returns false after a printed error. */
bool set_option(const subcommand *, const option *, const char *value, void *to);
void print_options(const subcommand *, FILE *);
/* Prints "weft: NAME: text; see weft NAME --help" and returns USAGE. */
__attribute__((format(printf, 2, 3))) int usage_error(const subcommand *, const char *format, ...);
/* Prints an error as usage_error does and returns false. */
#define usage_failure(...) (usage_error(__VA_ARGS__) == GOOD)
#endif
