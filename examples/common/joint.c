/* joint.c - the alignment, the trie of n-grams, and the search for pronunciations. */
#include "joint.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A graphone is the number (letter * PHONES + first phone) * PHONES + second phone; phone 0: none. END
 * begins and ends a word. */
enum { END = LETTERS * PHONES * PHONES, GRAPHONES = END + 1, MOST = 2 };

static int32_t graphone_of(char letter, const int32_t *phones, int32_t n)
{
    return ((letter - 'a') * PHONES + (n > 0 ? phones[0] : 0)) * PHONES + (n > 1 ? phones[1] : 0);
}

/* ---- alignment ---- */
/* Node i * (phones + 1) + j of a lattice has read i letters and j phones. An edge is a graphone. */
enum { ROUNDS = 8, NODES = (LONGEST + 1) * (MOST * LONGEST + 1), EDGES = (MOST + 1) * NODES };
typedef struct { int32_t from, to, graphone; } edge;
typedef struct {
    int32_t letters, nodes, count;
    edge edge[EDGES];                            /* those on a path from the first node to the last */
} lattice;

static void make_lattice(lattice *l, const entry *e)
{
    size_t letters = strlen(e->word);
    l->letters = letters <= LONGEST ? (int32_t)letters : 0;
    l->count = 0;
    int32_t n = e->n, row = n + 1, many = l->letters;
    const bool fits = n <= MOST * many;
    l->nodes = fits ? (many + 1) * row : 1;
    for (int32_t i = 0; fits && i < many; i++)
        for (int32_t j = 0; j <= n && j <= MOST * i; j++)
            for (int32_t k = 0; k <= MOST && j + k <= n; k++)
                if (n - j - k <= MOST * (many - i - 1))
                    l->edge[l->count++] = (edge){ i * row + j, (i + 1) * row + j + k,
                                                  graphone_of(e->word[i], e->phones + j, k) };
}

/* Adds the expected number of each graphone, given their probabilities p. */
static void expect(const lattice *l, const double *p, double *sum)
{
    static double to[NODES], from[NODES];        /* probabilities of the paths to a node, and from it */
    const edge *end = l->edge + l->count;
    memset(to, 0, (size_t)l->nodes * sizeof *to);
    memset(from, 0, (size_t)l->nodes * sizeof *from);
    to[0] = from[l->nodes - 1] = 1;
    for (const edge *x = l->edge; x < end; x++)
        to[x->to] += to[x->from] * p[x->graphone];
    for (const edge *x = end; x-- > l->edge;)
        from[x->from] += p[x->graphone] * from[x->to];
    for (const edge *x = l->edge; x < end && from[0] > 0; x++)
        sum[x->graphone] += to[x->from] * p[x->graphone] * from[x->to] / from[0];
}

/* Stores the graphones of the most probable path, the first of equal ones. Returns whether one exists. */
static bool best_path(const lattice *l, const double *p, int32_t *graphones)
{
    static double most[NODES];
    static const edge *last[NODES];
    memset(most, 0, (size_t)l->nodes * sizeof *most);
    most[0] = 1;
    for (const edge *x = l->edge; x < l->edge + l->count; x++)
        if (most[x->from] * p[x->graphone] > most[x->to] * (1 + 1e-9)) {
            most[x->to] = most[x->from] * p[x->graphone];
            last[x->to] = x;
        }
    if (!l->count || !(most[l->nodes - 1] > 0))
        return false;
    const edge *x = last[l->nodes - 1];
    for (int32_t i = l->letters; i-- > 0; x = last[x->from])
        graphones[i] = x->graphone;
    return true;
}

int32_t *joint_align(entry *const *pair, int64_t n, int64_t *count)
{
    static double p[GRAPHONES], sum[GRAPHONES];
    static lattice l;
    int64_t letters = 0;
    for (int64_t i = 0; i < GRAPHONES; i++)
        p[i] = 1e-3;
    for (int round = 0; round < ROUNDS; round++) {
        double total = letters = 0;
        memset(sum, 0, sizeof sum);
        for (int64_t i = 0; i < n; i++) {
            make_lattice(&l, pair[i]);
            expect(&l, p, sum);
            letters += l.letters + 1;
        }
        for (int64_t i = 0; i < GRAPHONES; i++)
            total += sum[i];
        for (int64_t i = 0; i < GRAPHONES; i++)
            p[i] = total > 0 ? sum[i] / total : 0;
    }
    int32_t *graphones = memory((size_t)letters + 1, sizeof *graphones);
    *count = 0;
    for (int64_t i = 0; i < n; i++) {
        make_lattice(&l, pair[i]);
        if (best_path(&l, p, graphones + *count)) {
            *count += l.letters;
            graphones[(*count)++] = END;
        }
    }
    return graphones;
}

/* ---- n-grams ---- */
static const double DISCOUNT = 0.75;
/* Node 0 is the root, and the path to another node is an n-gram. */
typedef struct {
    int32_t parent, graphone, back;              /* back: the node of the n-gram without its first graphone */
    int32_t depth, count;                        /* count: occurrences, or distinct graphones before it */
    int32_t total, kinds;                        /* sum of the children's counts, and their number */
} node;
struct joint {
    node *node;
    int32_t nodes, room, order;
    int32_t *slot;                               /* [4 room] hash table of nodes by parent and graphone */
    int32_t *known, first[LETTERS + 2];          /* graphones, and the first of each letter and of END */
    pronunciation *found;                        /* [BEST kinds of the root] memory of a search */
};

static int32_t *slot_of(const joint *j, int32_t parent, int32_t graphone)
{
    uint32_t mask = 4 * (uint32_t)j->room - 1;
    uint32_t h = ((uint32_t)parent * 2654435761u ^ (uint32_t)graphone * 40503u) * 2246822519u;
    for (h ^= h >> 15;; h++) {
        int32_t *slot = &j->slot[h & mask];
        const node *x = &j->node[*slot];
        if (!*slot || (x->parent == parent && x->graphone == graphone))
            return slot;
    }
}

static void make_room(joint *j, int32_t room)
{
    node *old = j->node;
    free(j->slot);
    j->room = room;
    j->node = memory((size_t)room, sizeof *j->node);
    j->slot = memory(4 * (size_t)room, sizeof *j->slot);
    if (old)
        memcpy(j->node, old, (size_t)j->nodes * sizeof *old);
    free(old);
    for (int32_t i = 1; i < j->nodes; i++)
        *slot_of(j, j->node[i].parent, j->node[i].graphone) = i;
}

/* Returns the child of a node, or 0. */
static int32_t child(const joint *j, int32_t parent, int32_t graphone)
{
    return *slot_of(j, parent, graphone);
}

static int32_t add_child(joint *j, int32_t parent, int32_t graphone)
{
    if (j->nodes == j->room)
        make_room(j, 2 * j->room);
    int32_t *slot = slot_of(j, parent, graphone), depth = j->node[parent].depth + 1;
    if (!*slot) {
        j->node[j->nodes] = (node){ .parent = parent, .graphone = graphone, .depth = depth };
        *slot = j->nodes++;
    }
    return *slot;
}

/* Counts the n-grams that end at each graphone of a word, and returns the place after the word's end. The
 * longest ones count occurrences; the others count later. */
static const int32_t *count_word(joint *j, const int32_t *graphone, const int32_t *end)
{
    int32_t last[ORDERS + 1] = { 0, add_child(j, 0, END) }, seen = 1; /* last[k]: the last k graphones */
    for (bool more = true; more && graphone < end; seen += seen < j->order, graphone++) {
        more = *graphone != END;
        for (int32_t k = seen < j->order ? seen : j->order - 1; k >= 0; k--) {
            last[k + 1] = add_child(j, last[k], *graphone);
            if (k == seen || k + 1 == j->order)
                j->node[last[k + 1]].count++;
        }
    }
    return graphone;
}

joint *joint_new(const int32_t *graphones, int64_t count, int order)
{
    joint *j = memory(1, sizeof *j);
    j->order = order;
    j->nodes = 1;
    make_room(j, 1 << 16);
    for (const int32_t *at = graphones; at < graphones + count;)
        at = count_word(j, at, graphones + count);
    for (int32_t i = 1; i < j->nodes; i++) {     /* parents are before their children */
        node *x = &j->node[i];
        x->back = x->depth > 1 ? child(j, j->node[x->parent].back, x->graphone) : 0;
    }
    for (int32_t i = 1; i < j->nodes; i++)
        if (j->node[i].depth > 1)
            j->node[j->node[i].back].count++;
    for (int32_t i = 1; i < j->nodes; i++) {
        node *parent = &j->node[j->node[i].parent];
        parent->total += j->node[i].count;
        parent->kinds++;
    }
    j->known = memory((size_t)j->node->kinds + 1, sizeof *j->known);
    j->found = memory(BEST * (size_t)j->node->kinds + 1, sizeof *j->found);
    for (int32_t g = 0, n = 0; g < GRAPHONES; g++) {
        if (child(j, 0, g))
            j->known[n++] = g;
        j->first[g / (PHONES * PHONES) + 1] = n;
    }
    return j;
}

void joint_free(joint *j)
{
    if (j) {
        free(j->node);
        free(j->slot);
        free(j->known);
        free(j->found);
    }
    free(j);
}

static double probability(const joint *j, int32_t context, int32_t graphone)
{
    const node *x = &j->node[context];
    double shorter = context ? probability(j, x->back, graphone) : 1.0 / x->kinds;
    int32_t next = child(j, context, graphone);
    double count = next ? j->node[next].count - DISCOUNT : 0;
    return x->total ? (count + DISCOUNT * x->kinds * shorter) / x->total : shorter;
}

/* Returns the node of the longest known context after a graphone. */
static int32_t move_on(const joint *j, int32_t context, int32_t graphone)
{
    for (;; context = j->node[context].back) {
        int32_t next = j->node[context].depth + 1 < j->order ? child(j, context, graphone) : 0;
        if (!context || (next && j->node[next].total))
            return next;
    }
}

/* ---- the search ---- */
/* Adds x to the list. If its phones and context are there already, adds the probabilities. */
static void add(pronunciation *list, int32_t *n, const pronunciation *x)
{
    for (pronunciation *it = list; it < list + *n; it++)
        if (it->node == x->node && it->n == x->n && !memcmp(it->phones, x->phones, (size_t)x->n)) {
            double more = fmax(it->log_p, x->log_p), less = fmin(it->log_p, x->log_p);
            it->log_p = more + log1p(exp(less - more));
            return;
        }
    list[(*n)++] = *x;
}

static int best_first(const void *a, const void *b)
{
    const pronunciation *x = a, *y = b;
    if (x->log_p != y->log_p)
        return x->log_p < y->log_p ? 1 : -1;
    if (x->node != y->node || x->n != y->n)
        return x->node != y->node ? x->node - y->node : x->n - y->n;
    return memcmp(x->phones, y->phones, (size_t)x->n);
}

/* Adds a graphone's phones to x. Returns whether x can still become must [n] with that many letters left. */
static bool append(pronunciation *x, int32_t graphone, const int32_t *must, int32_t n, int32_t left)
{
    const int32_t phones[MOST] = { graphone / PHONES % PHONES, graphone % PHONES };
    for (int k = 0; k < MOST && phones[k] && graphone != END; k++) {
        if (must && (x->n == n || must[x->n] != phones[k]))
            return false;
        x->phones[x->n++] = (uint8_t)phones[k];
    }
    return !must || n - x->n <= MOST * left;
}

int32_t joint_search(const joint *j, const char *word, const int32_t *must, int32_t n,
                     pronunciation best[BEST])
{
    if (strlen(word) > LONGEST)
        return 0;
    const int32_t letters = (int32_t)strlen(word);
    int32_t count = 1;
    best[0] = (pronunciation){ .node = child(j, 0, END) };
    for (int32_t i = 0; i <= letters; i++) {
        const int32_t *first = j->first + (i < letters ? word[i] - 'a' : LETTERS);
        int32_t found = 0;
        for (int32_t k = 0; k < count; k++)
            for (const int32_t *g = j->known + first[0]; g < j->known + first[1]; g++) {
                pronunciation x = best[k];
                if (append(&x, *g, must, n, i < letters ? letters - 1 - i : 0)) {
                    x.log_p += log(probability(j, x.node, *g));
                    x.node = move_on(j, x.node, *g);
                    add(j->found, &found, &x);
                }
            }
        qsort(j->found, (size_t)found, sizeof *j->found, best_first);
        count = found < BEST ? found : BEST;
        memcpy(best, j->found, (size_t)count * sizeof *best);
    }
    return count;
}
