/* pictures.h - the common parts of the tests of pictures: a file for each test, a check for well-formed XML,
 * golden bytes. */
#ifndef WEFT_TESTS_PICTURES_H
#define WEFT_TESTS_PICTURES_H
#include <ctype.h>
#include <sys/stat.h>
#include "files.h"
#include "io/io.h"

static char path[64];

UNUSED static void begin(void)
{
    snprintf(path, sizeof path, "%s/weft_picture_%d.svg", P_tmpdir, (int)getpid());
    unlink(path);
}
UNUSED static void remove_picture(void) { unlink(path); }

UNUSED static char *text_at(const char *place)
{
    content b = read_bytes(place);
    cr_assert_eq(strlen((char *)b.at), b.n);
    return (char *)b.at;
}
UNUSED static char *text_of_file(void) { return text_at(path); }

UNUSED static int count(const char *text, const char *part)
{
    int n = 0;
    for (; (text = strstr(text, part)); text += strlen(part))
        n++;
    return n;
}

/* ---- a small XML parser ---- */
/* Elements nest, attributes are quoted and unique, entities are known, characters are XML's. */
typedef struct { const char *at, *start; char open[32][32]; int depth, elements; } xml;
#define GOOD(x, condition) \
    cr_assert(condition, "no XML at byte %d: %.60s", (int)((x)->at - (x)->start), (x)->at)

static void character(xml *x)
{
    int n = weft__utf8_character(x->at);
    unsigned char c = (unsigned char)*x->at;
    GOOD(x, n > 0 && (c >= 0x20 || c == '\t' || c == '\n') && c != '<');
    GOOD(x, n != 3 || strncmp(x->at, "\xEF\xBF\xBE", 2) || (unsigned char)x->at[2] < 0xBE);
    if (c == '&')
        GOOD(x, !strncmp(x->at, "&lt;", 4) || !strncmp(x->at, "&gt;", 4) || !strncmp(x->at, "&amp;", 5) ||
                    !strncmp(x->at, "&quot;", 6));
    x->at += n;
}

static int name(xml *x, char out[32])
{
    int n = 0;
    while (isalnum((unsigned char)*x->at) || strchr("-_:", *x->at ? *x->at : ' '))
        out[n++ < 31 ? n - 1 : 31] = *x->at++;
    GOOD(x, n > 0 && n < 32);
    out[n] = 0;
    return n;
}

static void attributes(xml *x)
{
    char seen[400] = " ", one[40], key[32];
    while (*x->at == ' ') {
        x->at++;
        name(x, key);
        snprintf(one, sizeof one, " %s ", key);
        GOOD(x, !strstr(seen, one) && *x->at == '=' && x->at[1] == '"');
        strcat(seen, key);
        strcat(seen, " ");
        for (x->at += 2; *x->at != '"'; )
            character(x);
        x->at++;
    }
}

static void tag(xml *x)
{
    char key[32];
    bool closes = x->at[1] == '/';
    x->at += 1 + closes;
    name(x, key);
    if (closes) {
        GOOD(x, x->depth > 0 && !strcmp(x->open[x->depth - 1], key));
        x->depth--;
    } else {
        attributes(x);
        x->elements++;
        GOOD(x, x->depth < 32);
        if (*x->at == '/')
            x->at++;
        else
            strcpy(x->open[x->depth++], key);
    }
    GOOD(x, *x->at == '>');
    x->at++;
}

UNUSED static int well_formed(const char *text)         /* how many elements */
{
    static const char head[] = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
    cr_assert(!strncmp(text, head, sizeof head - 1));
    xml x = { .at = text + sizeof head - 1, .start = text };
    while (*x.at) {
        if (*x.at == '<')
            tag(&x);
        else
            character(&x);
        GOOD(&x, x.depth > 0 || *x.at == '\n' || !*x.at);
        x.at += x.depth == 0 && *x.at == '\n';
    }
    GOOD(&x, x.depth == 0);
    cr_assert(!strstr(text, "nan") && !strstr(text, "inf\""), "invalid numbers: %s", text);
    return x.elements;
}

UNUSED static const char nasty[] =
    "<&>\"' \xC3\xA4\xE2\x86\x92\xF0\x9F\x98\x80 \x01 \xFF \xED\xA0\x80 \xEF\xBF\xBF \xC0\x80 %s %n ]]>";

/* Refused with these words, and nothing written; drawn. */
#define REFUSED(part, call)                                                                           \
    do {                                                                                              \
        cr_assert_eq(call, WEFT_EARG, "taken: %s", #call);                                            \
        cr_assert(strstr(weft_file_message(), part), "\"%s\" lacks \"%s\"", weft_file_message(), part); \
        cr_assert(access(path, F_OK), "written: %s", #call);                                          \
    } while (0)
#define DRAWN(call) cr_assert_eq(call, WEFT_OK, "%s", weft_file_message())
/* Draws, checks the XML, and gives the text of the picture. */
UNUSED static char *drawn_text(weft_status status)
{
    DRAWN(status);
    char *text = text_of_file();
    well_formed(text);
    return text;
}

/* Compares the picture with tests/golden/pictures. WEFT_UPDATE_GOLDEN=1 rewrites it; view the new one. */
UNUSED static void golden(const char *file)
{
    char name[100], *text = text_of_file();
    well_formed(text);
    snprintf(name, sizeof name, "pictures/%s", file);
    const char *want = golden_path(name);
    if (getenv("WEFT_UPDATE_GOLDEN"))
        cr_assert_eq(weft_write_file(want, text, strlen(text)), WEFT_OK, "%s", weft_file_message());
    char *expected = text_at(want);
    size_t at = 0;
    while (text[at] && text[at] == expected[at])
        at++;
    cr_assert(text[at] == expected[at], "%s differs at byte %zu: \"%.60s\", expected \"%.60s\"", file, at,
              text + at, expected + at);
}
#endif
