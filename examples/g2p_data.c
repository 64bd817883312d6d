/* g2p_data.c - reading, splitting and scoring; see g2p_data.h. A line of the dictionary is an s-expression,
 * word, part of speech, syllables with their stress:
 *     ("aaberg" nil (((aa) 1) ((b er g) 0))) */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/program.h"
#include "g2p_data.h"

typedef struct { char *word; int32_t *phones; int32_t n; } entry;
typedef struct {
    const char *name; long long line;
    char *at;
    phone_set phones; bool closed;               /* closed: no new phones */
    entry *entries; int64_t n;
    int32_t *pool; int64_t used;                 /* phones of all entries, by number of appearance */
} reader;

static void *own(dictionary *d, size_t n, size_t size) { return d->owned[d->owns++] = memory(n, size); }

/* ---- one line ---- */
static void expect(reader *r, const char *token)
{
    size_t n = strlen(token);
    while (*r->at == ' ')
        r->at++;
    if (strncmp(r->at, token, n))
        quit(1, "%s:%lld: %s was expected before \"%.20s\"%s", r->name, r->line, token, r->at,
             *token == '(' ? "; lines are as in festlex, (\"word\" n (((w er) 1))); cmudict's are not read" :
                             "");
    r->at += n;
}

static bool next_is(reader *r, char c)
{
    while (*r->at == ' ')
        r->at++;
    return *r->at == c;
}

static char *atom(reader *r, const char *what)   /* up to a blank, a quote or a bracket */
{
    while (*r->at == ' ')
        r->at++;
    char *start = r->at;
    r->at += strcspn(r->at, " ()\"");
    if (r->at == start)
        quit(1, "%s:%lld: %s was expected before \"%.20s\"", r->name, r->line, what, r->at);
    return start;
}

static int32_t phone_number(reader *r, const char *name, size_t n)
{
    if (n == 2 && !memcmp(name, "ax", 2))
        name = "ah";
    phone_set *p = &r->phones;
    for (int i = 1; i < p->n; i++)
        if (strlen(p->name[i]) == n && !memcmp(p->name[i], name, n))
            return i;
    if (n >= NAME || p->n == PHONES || r->closed)
        quit(1, "%s:%lld: phone \"%.*s\" %s", r->name, r->line, (int)n, name,
             r->closed ? "is not known" : "is one too many, or too long");
    memcpy(p->name[p->n], name, n);
    return p->n++;
}

static int32_t read_syllables(reader *r)         /* how many phones */
{
    int32_t n = 0;
    for (expect(r, "("); !next_is(r, ')'); ) {
        for (expect(r, "("), expect(r, "("); !next_is(r, ')'); n++) {
            const char *name = atom(r, "a phone");
            r->pool[r->used++] = phone_number(r, name, (size_t)(r->at - name));
        }
        expect(r, ")");
        atom(r, "a stress");
        expect(r, ")");
    }
    expect(r, ")");
    return n;
}

bool lower_word(char *word)
{
    for (; *word; word++) {
        *word = (char)(*word >= 'A' && *word <= 'Z' ? *word - 'A' + 'a' : *word);
        if (*word < 'a' || *word > 'z')
            return false;
    }
    return true;
}

static void read_line(reader *r)
{
    expect(r, "(");
    expect(r, "\"");
    char *word = r->at, *end = strchr(word, '"');
    if (!end || end == word)
        quit(1, "%s:%lld: a word in quotes was expected", r->name, r->line);
    r->at = end + 1;
    atom(r, "a part of speech");
    int32_t *phones = r->pool + r->used, n = read_syllables(r);
    expect(r, ")");
    if (!next_is(r, 0))
        quit(1, "%s:%lld: \"%.20s\" is behind the end of the entry", r->name, r->line, r->at);
    *end = 0;
    if (n == 0)
        quit(1, "%s:%lld: \"%s\" has no phones", r->name, r->line, word);
    if (lower_word(word))
        r->entries[r->n++] = (entry){ word, phones, n };
}

/* ---- all lines ---- */
static void read_lines(reader *r, char *text)
{
    for (char *line = text, *end; line; line = end) {
        end = strchr(line, '\n');
        if (end)
            *end++ = 0;
        line[strcspn(line, "\r")] = 0;
        r->at = line;
        r->line++;
        bool heading = r->line == 1 && !strcmp(line, "MNCL");
        if (*line && !heading)
            read_line(r);
    }
}

static int by_name(const void *a, const void *b) { return strcmp(a, b); }

static void sort_phones(reader *r)               /* and renumber what was read */
{
    phone_set before = r->phones;
    int32_t number[PHONES] = { 0 };
    qsort(r->phones.name[1], (size_t)r->phones.n - 1, NAME, by_name);
    for (int i = 1; i < before.n; i++)
        for (int k = 1; k < before.n; k++)
            if (!strcmp(before.name[i], r->phones.name[k]))
                number[i] = k;
    for (int64_t i = 0; i < r->used; i++)
        r->pool[i] = number[r->pool[i]];
}

/* entries of one word stay in the file's order */
static int by_word(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    int order = strcmp(x->word, y->word);
    return order ? order : (x->word > y->word) - (x->word < y->word);
}

static bool is_known(const dictionary *d, int64_t from, const entry *e)
{
    for (int64_t s = from; s < d->sayings; s++)
        if (d->length[s] == e->n && !memcmp(d->said[s], e->phones, (size_t)e->n * sizeof *e->phones))
            return true;
    return false;
}

static void add_entry(dictionary *d, const entry *e)
{
    if (d->words == 0 || strcmp(d->word[d->words - 1], e->word)) {
        d->word[d->words] = e->word;
        d->letters[d->words] = (int32_t)strlen(e->word);
        d->first[d->words++] = d->sayings;
    }
    if (is_known(d, d->first[d->words - 1], e))
        return;
    d->said[d->sayings] = e->phones;
    d->length[d->sayings++] = e->n;
    d->first[d->words] = d->sayings;
}

static bool chosen(int64_t word, int64_t words, int64_t limit)    /* `limit` of `words`, evenly spread */
{
    return limit <= 0 || limit >= words || word * limit / words != (word - 1) * limit / words || word == 0;
}

static int64_t distinct(const reader *r)
{
    int64_t n = 0;
    for (int64_t i = 0; i < r->n; i++)
        n += i == 0 || strcmp(r->entries[i].word, r->entries[i - 1].word) != 0;
    return n;
}

static void collect(reader *r, dictionary *d, int64_t limit)
{
    qsort(r->entries, (size_t)r->n, sizeof *r->entries, by_word);
    size_t n = (size_t)r->n;
    int64_t words = distinct(r), word = -1;
    d->phones = r->phones;
    d->word = own(d, n, sizeof *d->word);
    d->letters = own(d, n, sizeof *d->letters);
    d->first = own(d, n + 1, sizeof *d->first);
    d->said = own(d, n, sizeof *d->said);
    d->length = own(d, n, sizeof *d->length);
    for (int64_t i = 0; i < r->n; i++) {
        word += i == 0 || strcmp(r->entries[i].word, r->entries[i - 1].word) != 0;
        if (chosen(word, words, limit))
            add_entry(d, &r->entries[i]);
    }
}

static dictionary parse(char *text, const char *name, const phone_set *phones, int64_t limit)
{
    dictionary d = { 0 };
    reader r = { .name = name, .phones = { .n = 1 }, .closed = phones != NULL };
    size_t lines = 2, size = strlen(text);
    for (const char *c = text; *c; c++)
        lines += *c == '\n';
    r.entries = memory(lines, sizeof *r.entries);
    r.pool = own(&d, size / 2 + 1, sizeof *r.pool);               /* a phone takes two bytes at least */
    if (phones)
        r.phones = *phones;
    read_lines(&r, text);
    if (!phones)
        sort_phones(&r);
    collect(&r, &d, limit);
    free(r.entries);
    return d;
}

dictionary dictionary_parse(char *text, const char *name, const phone_set *phones)
{
    return parse(text, name, phones, 0);
}

dictionary dictionary_read(const char *path, int64_t limit)
{
    FILE *file = fopen(path, "rb");
    size_t size = 0, room = 1 << 16;
    char *text = memory(room, 1);
    for (size_t n; file && (n = fread(text + size, 1, room - size - 1, file)) > 0; ) {
        size += n;
        if (size + 1 == room && !(text = realloc(text, room *= 2)))
            quit(1, "%s: out of memory", path);
    }
    if (!file || ferror(file))
        quit(1, "%s: cannot be read: %s", path, strerror(errno));
    fclose(file);
    text[size] = 0;
    if (strlen(text) != size)
        quit(1, "%s: not a text, it has zero bytes", path);
    dictionary d = parse(text, path, NULL, limit);
    d.owned[d.owns++] = text;
    if (d.words < 20)
        quit(1, "%s: %lld words; a dictionary has more", path, (long long)d.words);
    return d;
}

void dictionary_end(dictionary *d)
{
    while (d->owns > 0)
        free(d->owned[--d->owns]);
    *d = (dictionary){ 0 };
}

/* ---- parts ---- */
part part_of(int64_t word) { return word % 10 == 0 ? TEST : word % 20 == 5 ? DEV : TRAIN; }

int64_t *words_of(const dictionary *d, part p, int64_t *n)
{
    int64_t *words = memory((size_t)d->words, sizeof *words);
    *n = 0;
    int32_t longest = 0;
    for (int64_t i = 0; i < d->words; i++)
        longest = d->letters[i] > longest ? d->letters[i] : longest;
    for (int32_t length = 1; length <= longest; length++)
        for (int64_t i = 0; i < d->words; i++)
            if ((p == ALL || part_of(i) == p) && d->letters[i] == length)
                words[(*n)++] = i;
    return words;
}

int64_t dictionary_find(const dictionary *d, const char *word)
{
    for (int64_t i = 0; i < d->words; i++)
        if (!strcmp(d->word[i], word))
            return i;
    return -1;
}

char *dictionary_text(const dictionary *d, part p)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    for (int64_t i = 0; out && i < d->words; i++)
        for (int64_t s = d->first[i]; part_of(i) == p && s < d->first[i + 1]; s++)
            fprintf(out, "(\"%s\" nil (((%s) 0)))\n", d->word[i],
                    spoken(&d->phones, d->said[s], d->length[s]));
    if (!out || fclose(out))
        quit(1, "out of memory");
    return text;
}

int64_t dictionary_print(const dictionary *d)    /* FNV-1a */
{
    uint64_t hash = 0xCBF29CE484222325u;
    for (int i = 0; i < d->phones.n; i++)
        for (const char *c = d->phones.name[i]; *c; c++)
            hash = (hash ^ (unsigned char)*c) * 0x100000001B3u;
    for (int64_t i = 0; i < d->words; i++) {
        for (const char *c = d->word[i]; *c; c++)
            hash = (hash ^ (unsigned char)*c) * 0x100000001B3u;
        for (int64_t s = d->first[i]; s < d->first[i + 1]; s++)
            for (int32_t k = 0; k <= d->length[s]; k++)
                hash = (hash ^ (uint64_t)(k < d->length[s] ? d->said[s][k] : 0)) * 0x100000001B3u;
    }
    return (int64_t)hash;
}

/* ---- phones ---- */
void phones_text(const phone_set *p, char text[PHONES * NAME])
{
    size_t size = 0;
    text[0] = 0;
    for (int i = 1; i < p->n; i++)
        size += (size_t)snprintf(text + size, PHONES * NAME - size, "%s%s", i > 1 ? " " : "", p->name[i]);
}

phone_set phones_parse(const char *text)
{
    phone_set p = { .n = 1 };
    for (size_t n; *text; text += n + (text[n] == ' ')) {
        n = strcspn(text, " ");
        if (n == 0 || n >= NAME || p.n == PHONES)
            quit(1, "the list of phones is damaged at \"%.20s\"", text);
        memcpy(p.name[p.n++], text, n);
    }
    return p;
}

const char *spoken(const phone_set *p, const int32_t *phones, int64_t n)
{
    static char buffers[4][1024];
    static int turn;
    char *text = buffers[turn++ % 4];
    size_t size = 0;
    text[0] = 0;
    for (int64_t i = 0; i < n && size + NAME + 1 < sizeof buffers[0]; i++)
        size +=
            (size_t)snprintf(text + size, sizeof buffers[0] - size, "%s%s", i ? " " : "", p->name[phones[i]]);
    return text;
}

/* ---- score ---- */
void score_word(score *s, const dictionary *d, int64_t word, const int32_t *phones, int64_t n)
{
    int64_t distance = 0, length = 0;
    for (int64_t i = d->first[word]; i < d->first[word + 1]; i++) {
        int64_t away = weft_edit_distance(phones, n, d->said[i], d->length[i]);
        if (away < 0)
            quit(1, "out of memory");
        if (length == 0 || away * length < distance * d->length[i]) {
            distance = away;
            length = d->length[i];
        }
    }
    s->words++;
    s->wrong += distance != 0;
    s->distance += distance;
    s->length += length;
}

double score_per(const score *s) { return s->length ? 100.0 * (double)s->distance / (double)s->length : 0; }
double score_wer(const score *s) { return s->words ? 100.0 * (double)s->wrong / (double)s->words : 0; }
