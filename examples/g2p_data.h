/* g2p_data.h - Festival's pronouncing dictionary: words, what they sound like, which of them are for
 * training, and the score.
 *
 * A word is letters a-z; a phone is a number from 1 on (0 is the mark that begins and ends a
 * pronunciation). */
#ifndef G2P_DATA_H
#define G2P_DATA_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* phones at most; bytes of a phone's name */
enum { LETTERS = 26, MARK = 0, PHONES = 64, NAME = 8 };

/* name[0] is the mark's; sorted from 1 on */
typedef struct { int n; char name[PHONES][NAME]; } phone_set;

typedef struct {
    phone_set phones;
    /* distinct words, sorted; pronunciations, word by word, distinct within one */
    int64_t   words, sayings;
    char    **word;                              /* [words] */
    int64_t  *first;                             /* [words + 1] the first pronunciation of each */
    int32_t **said;                              /* [sayings] phones */
    int32_t  *letters, *length;                  /* [words], [sayings] how many */
    void     *owned[8]; int owns;
} dictionary;

typedef enum { TRAIN, DEV, TEST, ALL } part;

/* Reads the file of festlex-cmu; words with other characters than letters are left out, capitals count as
 * small letters, the phone ax is ah. limit: about so many words, evenly spread; 0: all. Quits with file and
 * line if it is no such file. */
dictionary dictionary_read(const char *path, int64_t limit);
/* The same from a text; `name` stands in messages. phones: which there are, in that order, or NULL. The
 * text is written to. */
dictionary dictionary_parse(char *text, const char *name, const phone_set *phones);
void       dictionary_end(dictionary *d);
/* The words of a part as a text that dictionary_parse reads. To be freed. */
char      *dictionary_text(const dictionary *d, part p);
/* The part to which a word belongs, by its place among the sorted words: every 10th is for the test, every
 * 20th for dev. */
part       part_of(int64_t word);
/* The words of a part, the shortest first; to be freed. */
int64_t   *words_of(const dictionary *d, part p, int64_t *n);
/* -1 if there is no such word. */
int64_t    dictionary_find(const dictionary *d, const char *word);
/* A number that differs if the dictionaries do. */
int64_t    dictionary_print(const dictionary *d);

/* Capitals become small letters; whether all of it are letters. */
bool       lower_word(char *word);

/* All names, separated by blanks, and back. */
void       phones_text(const phone_set *p, char text[PHONES * NAME]);
phone_set  phones_parse(const char *text);
/* A pronunciation as text, into a buffer that is overwritten by the fourth call after it. */
const char *spoken(const phone_set *p, const int32_t *phones, int64_t n);

/* Of a word's references the one counts that minimises distance / length. */
typedef struct { int64_t words, wrong, distance, length; } score;
void   score_word(score *s, const dictionary *d, int64_t word, const int32_t *phones, int64_t n);
double score_per(const score *s), score_wer(const score *s);      /* % */
#endif
