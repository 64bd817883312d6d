/* dictionary.c - reads the pronouncing dictionary, splits it and scores answers; see dictionary.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "dictionary.h"

/* ---- phones ---- */
void phones_text(const phone_set *p, char text[PHONES * NAME])
{
    size_t size = 0;
    text[0] = 0;
    for (int i = 1; i < p->n; i++)
        size += (size_t)snprintf(text + size, PHONES * NAME - size, "%s%s", i > 1 ? " " : "", p->name[i]);
}

/* Returns the number of a phone, and adds a new one. 0: its name is too long, or the list is full. */
static int32_t phone_number(phone_set *p, const char *name, size_t n)
{
    if (n == 2 && !memcmp(name, "ax", 2))        /* cmudict does not distinguish them */
        name = "ah";
    for (int i = 1; i < p->n; i++)
        if (strlen(p->name[i]) == n && !memcmp(p->name[i], name, n))
            return i;
    if (n >= NAME || p->n == PHONES)
        return 0;
    memcpy(p->name[p->n], name, n);
    return p->n++;
}

phone_set phones_parse(const char *text)
{
    phone_set p = { .n = 1 };
    for (size_t n; *text; text += n + (text[n] == ' ')) {
        n = strcspn(text, " ");
        if (n == 0 || !phone_number(&p, text, n))
            quit(1, "the list of phones is damaged at \"%.20s\"", text);
    }
    return p;
}

const char *spoken(const phone_set *p, const int32_t *phones, int64_t n)
{
    static char buffers[2][1024];
    static int turn;
    char *text = buffers[turn++ % 2];
    size_t size = 0, room = sizeof buffers[0];
    text[0] = 0;
    for (int64_t i = 0; i < n && size + NAME + 1 < room; i++)
        size += (size_t)snprintf(text + size, room - size, "%s%s", i ? " " : "", p->name[phones[i]]);
    return text;
}

/* ---- the dictionary ---- */
bool lower_word(char *word)
{
    for (; *word; word++) {
        *word = (char)(*word >= 'A' && *word <= 'Z' ? *word - 'A' + 'a' : *word);
        if (*word < 'a' || *word > 'z')
            return false;
    }
    return true;
}

/* Adds a phone and its mark to an entry. Returns false if its name is too long, or the list is full. */
static bool add_phone(entry *e, phone_set *p, const char *name, size_t n, char stress)
{
    e->mark[e->n] = !strchr("aeiou", *name) ? 0 : stress == '1' || stress == '2' ? stress - '0' + 1 : 1;
    e->phones[e->n] = phone_number(p, name, n);
    return e->phones[e->n++] != 0;
}

/* Parses a line of festlex into e and writes the phones. Returns false unless the line has a word, a part of
 * speech, and syllables with their stress:
 *     ("aaberg" nil (((aa) 1) ((b er g) 0))) */
static bool parse_festlex(char *line, entry *e, phone_set *p)
{
    int begin = 0, end = 0, tab = 0, from, to, stress, next = 1, tail = 0;
    sscanf(line, " ( \"%n%*[^\"]%n\" %*[^ ()\"] (%n", &begin, &end, &tab);
    for (; tab && next; tab += next) {
        next = 0;
        sscanf(line + tab, " ( ( %n%*[^()\"]%n) %n%*[^ ()\"] )%n", &from, &to, &stress, &next);
        char *name = line + tab + from, *last = line + tab + to;
        for (size_t n; next && name < last; name += n + strspn(name + n, " ")) {
            n = strcspn(name, " )");
            if (!add_phone(e, p, name, n, line[tab + stress]))
                return false;
        }
    }
    sscanf(line + tab, " ) ) %n", &tail);
    if (!tail || line[tab + tail] || e->n == 0)
        return false;
    e->word = line + begin;
    line[end] = 0;
    return true;
}

/* Parses a line of cmudict into e and writes the phones. Returns false unless the line has a word and phones
 * with optional stress:
 *     AALBORG(1)  AA1 L B AO0 R G # a comment */
static bool parse_cmudict(char *line, entry *e, phone_set *p)
{
    size_t n = strcspn(line, " \t"), digits;
    char *name = line + n + strspn(line + n, " \t"), *comment = strchr(name, '#');
    if (comment)
        *comment = 0;
    for (; *name; name += strspn(name, " \t")) {
        char *end = name + strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
        char *next = end + (*end >= '0' && *end <= '2');
        if (end == name || (*next && !strchr(" \t", *next)))
            return false;
        for (char *c = name; c < end; c++)
            *c = (char)(*c | 32);                /* lowers capitals */
        if (!add_phone(e, p, name, (size_t)(end - name), *end))
            return false;
        name = next;
    }
    line[n] = 0;
    char *variant = strrchr(line, '(');
    digits = variant ? strspn(variant + 1, "0123456789") : 0;
    if (digits && !strcmp(variant + 1 + digits, ")"))
        *variant = 0;                            /* another pronunciation of the word */
    e->word = line;
    return *line && e->n > 0;
}

static int by_name(const void *a, const void *b) { return strcmp(a, b); }

static void sort_phones(phone_set *p, int32_t *pool, int64_t n)   /* also renumbers the phones in the pool */
{
    phone_set before = *p;
    int32_t number[PHONES] = { 0 };
    qsort(p->name[1], (size_t)p->n - 1, NAME, by_name);
    for (int i = 1; i < p->n; i++)
        number[i] = phone_number(p, before.name[i], strlen(before.name[i]));
    for (int64_t i = 0; i < n; i++)
        pool[i] = number[pool[i]];
}

/* Entries of one word stay in the order of the file. */
static int by_word(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    int order = strcmp(x->word, y->word);
    return order ? order : (x->word > y->word) - (x->word < y->word);
}

static void add_entry(dictionary *d, entry e)
{
    if (d->words == 0 || strcmp(d->entry[d->entries - 1].word, e.word))
        d->first[d->words++] = d->entries;
    for (int64_t i = d->first[d->words - 1]; i < d->entries; i++)
        if (d->entry[i].n == e.n && !memcmp(d->entry[i].phones, e.phones, (size_t)e.n * sizeof *e.phones))
            return;
    d->entry[d->entries++] = e;
    d->first[d->words] = d->entries;
}

static bool begins_word(const entry *e, int64_t i) { return i == 0 || strcmp(e[i].word, e[i - 1].word); }

/* Sorts the entries and keeps the distinct ones of about `limit` words, evenly spread; 0: of all words. */
static void sort_entries(dictionary *d, int64_t limit)
{
    int64_t n = d->entries, words = 0, word = -1;
    qsort(d->entry, (size_t)n, sizeof *d->entry, by_word);
    for (int64_t i = 0; i < n; i++)
        words += begins_word(d->entry, i);
    d->first = memory((size_t)words + 1, sizeof *d->first);
    d->entries = 0;
    for (int64_t i = 0; i < n; i++) {
        word += begins_word(d->entry, i);
        bool all = limit <= 0 || limit >= words || word == 0;
        if (all || word * limit / words != (word - 1) * limit / words)
            add_entry(d, d->entry[i]);
    }
}

/* Returns whether a line has no entry. Comments of old versions begin with ##. */
static bool is_comment(const char *line)
{
    return !*line || !strncmp(line, ";;;", 3) || !strncmp(line, "##", 2);
}

dictionary dictionary_parse(char *text, const char *name, phone_set phones, int64_t limit)
{
    dictionary d = { .phones = phones, .text = text };
    size_t lines = 2, size = strlen(text);
    long long number = 1;
    for (const char *c = text; *c; c++)
        lines += *c == '\n';
    d.entry = memory(lines, sizeof *d.entry);
    const size_t room = size / 2 + 1;            /* a phone takes two bytes */
    d.pool = memory(2 * room, sizeof *d.pool);
    int32_t *to = d.pool;
    for (char *line = text, *end; line; line = end, number++) {
        end = strchr(line, '\n');
        if (end)
            *end++ = 0;
        line[strcspn(line, "\r")] = 0;
        if (is_comment(line) || (number == 1 && !strcmp(line, "MNCL")))   /* a heading */
            continue;
        entry e = { .phones = to, .mark = to + room };
        bool festlex = !strncmp(line, "(\"", 2);
        if (!(festlex ? parse_festlex : parse_cmudict)(line, &e, &d.phones))
            quit(1, "%s:%lld: found \"%.40s\"; expected a line as in cmudict, WORD  W ER1 D, or as in "
                    "festlex, (\"word\" n (((w er d) 1)))", name, number, line);
        to += e.n;
        if (lower_word(e.word))
            d.entry[d.entries++] = e;
    }
    sort_phones(&d.phones, d.pool, to - d.pool);
    sort_entries(&d, limit);
    return d;
}

dictionary dictionary_read(const char *path, int64_t limit)
{
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    size_t room = 0;
    ssize_t size = file ? getdelim(&text, &room, 0, file) : -1;
    if (!file || !text || (size < 0 && !feof(file)))
        quit(1, "%s: cannot be read: %s", path, strerror(errno));
    fclose(file);
    if (size < 0)
        *text = 0;                               /* an empty file */
    else if (strlen(text) != (size_t)size)
        quit(1, "%s: found zero bytes; expected a text", path);
    dictionary d = dictionary_parse(text, path, (phone_set){ .n = 1 }, limit);
    if (d.words < 20)
        quit(1, "%s: found %lld words; expected more", path, (long long)d.words);
    return d;
}

const char *word_at(const dictionary *d, int64_t word) { return d->entry[d->first[word]].word; }

int64_t dictionary_find(const dictionary *d, const char *word)
{
    for (int64_t i = 0; i < d->words; i++)
        if (!strcmp(word_at(d, i), word))
            return i;
    return -1;
}

part part_of(int64_t word) { return word % 10 == 0 ? TEST : word % 20 == 5 ? DEV : TRAIN; }

int64_t *words_of(const dictionary *d, part p, int64_t *n)
{
    int64_t *words = memory((size_t)d->words, sizeof *words), seen = 0;
    *n = 0;
    for (size_t length = 1; seen < d->words; length++)
        for (int64_t i = 0; i < d->words; i++)
            if (strlen(word_at(d, i)) == length) {
                seen++;
                if (p == ALL || part_of(i) == p)
                    words[(*n)++] = i;
            }
    return words;
}

char *test_text(const dictionary *d)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    for (int64_t i = 0; out && i < d->words; i++)
        for (int64_t k = d->first[i]; part_of(i) == TEST && k < d->first[i + 1]; k++)
            fprintf(out, "(\"%s\" nil (((%s) 0)))\n", d->entry[k].word,
                    spoken(&d->phones, d->entry[k].phones, d->entry[k].n));
    if (!out || fclose(out))
        quit(1, "out of memory");
    return text;
}

/* FNV-1a. */
static uint64_t hashed(uint64_t hash, uint64_t value) { return (hash ^ value) * 0x100000001B3u; }
int64_t dictionary_hash(const dictionary *d)
{
    uint64_t hash = 0xCBF29CE484222325u;
    for (int i = 0; i < d->phones.n; i++)
        for (const char *c = d->phones.name[i]; *c; c++)
            hash = hashed(hash, (unsigned char)*c);
    for (int64_t i = 0, word = 0; i < d->entries; i++) {
        const entry *e = &d->entry[i];
        bool begins = i == d->first[word];
        word += begins;
        for (const char *c = e->word; begins && *c; c++)
            hash = hashed(hash, (unsigned char)*c);
        for (int32_t k = 0; k <= e->n; k++)
            hash = hashed(hash, (uint64_t)(k < e->n ? e->phones[k] : 0));
    }
    return (int64_t)hash;
}

void score_word(score *s, const dictionary *d, int64_t word, const int32_t *phones, int64_t n)
{
    int64_t distance = 0, length = 0;
    for (int64_t i = d->first[word]; i < d->first[word + 1]; i++) {
        const entry *e = &d->entry[i];
        int64_t away = weft_edit_distance(phones, n, e->phones, e->n);
        if (away < 0)
            quit(1, "out of memory");
        if (length == 0 || away * length < distance * e->n) {
            distance = away;
            length = e->n;
        }
    }
    s->words++;
    s->wrong += distance != 0;
    s->distance += distance;
    s->length += length;
}

static double percent(int64_t some, int64_t all) { return all ? 100.0 * (double)some / (double)all : 0; }
double per_of(const score *s) { return percent(s->distance, s->length); }
double wer_of(const score *s) { return percent(s->wrong, s->words); }
