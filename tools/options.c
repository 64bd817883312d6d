/* options.c - reads the options of a subcommand from its arguments and lists them. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "core/nearest.h"
#include "tools/options.h"

int usage_error(const subcommand *s, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fprintf(stderr, "weft: %s: ", s->name);
    vfprintf(stderr, format, list);
    fprintf(stderr, "; see weft %s --help\n", s->name);
    va_end(list);
    return USAGE;
}

static const char *option_name(int i, const void *context)
{
    const option *o = ((const subcommand *)context)->options;
    return o && o[i].name ? o[i].name + 2 : NULL;
}

static int no_such_option(const subcommand *s, const char *word)
{
    char name[64];
    const char *letters = word + strspn(word, "-");
    snprintf(name, sizeof name, "%.*s", (int)strcspn(letters, "="), letters);
    const char *near = weft__nearest(name, option_name, s);
    return usage_error(s, "unknown option %.60s%s%s%s", word, near ? "; --" : "", near ? near : "",
                       near ? " is near" : "");
}

bool parse_whole(const char *text, int64_t least, int64_t most, int64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoll(text, &end, 10);
    return end > text && !*end && !errno && *number >= least && *number <= most;
}

bool set_option(const subcommand *s, const option *o, const char *value, void *to)
{
    char *field = (char *)to + o->field, *end;
    const char *before;
    double x;
    const size_t n = strlen(value);
    switch (o->kind) {
    case OPTION_FLAG:
        return *(bool *)field = true;
    case OPTION_WHOLE:
        return parse_whole(value, 1, (int64_t)o->most, (int64_t *)field) ||
               usage_failure(s, "%s: found \"%.40s\"; expected a whole number in 1 .. %.0f", o->name, value,
                             o->most);
    case OPTION_REAL:
        x = *(double *)field = strtod(value, &end);
        return (end > value && !*end && x > 0 && x <= o->most) ||
               usage_failure(s, "%s: found \"%.40s\"; expected a number above 0, at most %g", o->name, value,
                             o->most);
    case OPTION_OWN:
        return o->add(to, value);
    default:
        memcpy(&before, field, sizeof before);
        if (before && o->once)
            return usage_failure(s, "%s: found twice; expected once", o->name);
        if (o->ending && (n < strlen(o->ending) || strcmp(value + n - strlen(o->ending), o->ending)))
            return usage_failure(s, "%s: found \"%.60s\"; expected %s", o->name, value, o->value);
        memcpy(field, &value, sizeof value);
        return true;
    }
}

/* Returns the value of the option at argv[*index] and moves *index to its last argument. NULL after a printed
 * error. */
static const char *value_of(const subcommand *s, const option *o, int argc, char **argv, int *index)
{
    const char *equals = strchr(argv[*index], '='), *next = *index + 1 < argc ? argv[*index + 1] : NULL;
    if (!o->value)
        return equals ? usage_error(s, "%s: found a value; expected none", o->name), NULL : "";
    if (equals && equals[1])
        return equals + 1;
    if (!equals && o->is_value)
        return next && o->is_value(next) ? argv[++*index] : o->otherwise;
    if (!equals && next && *next && strncmp(next, "--", 2))
        return argv[++*index];
    return usage_error(s, "%s: found no value; expected %s", o->name, o->value), NULL;
}

static const option *find(const subcommand *s, const char *word)
{
    size_t n = strcspn(word, "=");
    for (const option *o = s->options; o && o->name; o++)
        if (strlen(o->name) == n && !strncmp(o->name, word, n))
            return o;
    return NULL;
}

int read_options(const subcommand *s, void *to, int *argc, char **argv)
{
    int operands = 0;
    bool ended = false;
    for (int index = 0; index < *argc; index++) {
        if (ended || argv[index][0] != '-' || !argv[index][1]) {
            argv[operands++] = argv[index];
        } else if (!strcmp(argv[index], "--")) {
            ended = true;
        } else {
            const option *o = find(s, argv[index]);
            const char *value = o ? value_of(s, o, *argc, argv, &index) : NULL;
            if (!o)
                return no_such_option(s, argv[index]);
            if (!value || !set_option(s, o, value, to))
                return USAGE;
        }
    }
    *argc = operands;
    return GOOD;
}

void print_options(const subcommand *s, FILE *to)
{
    enum { WIDTH = 26 };
    for (const option *o = s->options; o && o->name; o++) {
        char form[64];
        snprintf(form, sizeof form, o->is_value ? "%s[=%s]" : o->value ? "%s %s" : "%s", o->name, o->value);
        fprintf(to, "  %-*s ", WIDTH, form);
        for (const char *c = o->about; *c; c++) {
            fputc(*c, to);
            if (*c == '\n')
                fprintf(to, "  %-*s ", WIDTH, "");
        }
        fputc('\n', to);
    }
}
