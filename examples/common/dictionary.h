/* dictionary.h - the pronouncing dictionary cmudict for g2p.c and tagger.c, as published or as Festival
 * has it (festlex-cmu), its parts for training, dev and test, and the score.
 *
 * Phones are numbers from 1; 0 is the mark that begins and ends a pronunciation. */
#ifndef EXAMPLES_DICTIONARY_H
#define EXAMPLES_DICTIONARY_H
#include "program.h"

/* PHONES: capacity; NAME: bytes of a phone's name */
enum { LETTERS = 26, MARK = 0, PHONES = 64, NAME = 8 };

/* name[0] belongs to the mark; the others are sorted */
typedef struct {
    int n;
    char name[PHONES][NAME];
} phone_set;
typedef struct {
    char *word;
    int32_t *phones, *mark;                      /* [n] mark: 0 for a consonant, 1 + stress for a vowel */
    int32_t n;
} entry;
typedef struct {
    phone_set phones;
    entry *entry;                                /* [entries] sorted by word, distinct */
    int64_t *first;                              /* [words + 1] the first entry of each word */
    int64_t words, entries;
    char *text;                                  /* text, phones and marks of all entries */
    int32_t *pool;
} dictionary;

/* Reads a file, or quits with its name and line. limit: number of words to keep, about, evenly spread; 0:
 * all. Leaves out words with other characters than letters, lowers capitals, and replaces the phone ax by ah.
 * */
dictionary dictionary_read(const char *path, int64_t limit);
/* Parses a text, which it changes and keeps. name: for messages. phones: the known ones. */
dictionary dictionary_parse(char *text, const char *name, phone_set phones, int64_t limit);
/* Returns word number i. */
const char *word_at(const dictionary *d, int64_t i);
/* Returns the number of a word, or -1. */
int64_t dictionary_find(const dictionary *d, const char *word);
/* Returns a number that differs if two dictionaries do. */
int64_t dictionary_hash(const dictionary *d);
/* Lowers capitals. Returns whether all characters are letters. */
bool lower_word(char *word);

/* The part that a word belongs to, by its number: every 10th to the test, every 20th to dev. */
typedef enum { TRAIN, DEV, TEST, ALL } part;
part part_of(int64_t word);
/* Returns the words of a part, the shortest first. The caller frees them. */
int64_t *words_of(const dictionary *d, part p, int64_t *n);
/* Returns the words of the test as a text that dictionary_parse reads. */
char *test_text(const dictionary *d);

/* Write all names as text, separated by blanks, and read them. */
void phones_text(const phone_set *p, char text[PHONES * NAME]);
phone_set phones_parse(const char *text);
/* Returns a pronunciation as text, in a buffer that the next call but one overwrites. */
const char *spoken(const phone_set *p, const int32_t *phones, int64_t n);

/* A word counts with the pronunciation that minimises distance / length. */
typedef struct { int64_t words, wrong, distance, length; } score;
void score_word(score *s, const dictionary *d, int64_t word, const int32_t *phones, int64_t n);
/* Return the shares of wrong phones and of wrong words, in percent. */
double per_of(const score *s);
double wer_of(const score *s);
#endif
