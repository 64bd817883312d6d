/* hunt_program.c - makes the program of a seed, and smaller programs from it. */
#include "hunt.h"

static bool planted;
void hunt_plant(bool on) { planted = on; }

static int count(const hunt_operator *o)
{
    int n = 0;
    while (o[n].name)
        n++;
    return n;
}

int hunt_operators_known(void)
{
    return count(hunt_operators) + count(hunt_layers) + (planted ? count(hunt_planted) : 0);
}

const hunt_operator *hunt_operator_of(const hunt_step *s)
{
    int i = s->op, a = count(hunt_operators), b = count(hunt_layers);
    return i < a ? &hunt_operators[i] : i < a + b ? &hunt_layers[i - a] : &hunt_planted[i - a - b];
}

uint64_t hunt_hash(uint64_t a, uint64_t b)       /* splitmix64 of both */
{
    uint64_t h = a * 0x9E3779B97F4A7C15u + b + 1;
    h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9u;
    h = (h ^ (h >> 27)) * 0x94D049BB133111EBu;
    return h ^ (h >> 31);
}

static int64_t draw(uint64_t *random, int64_t below)
{
    *random = hunt_hash(*random, 7);
    return (int64_t)(*random % (uint64_t)(below < 1 ? 1 : below));
}
int64_t hunt_below(hunt_scene *s, int64_t n) { return draw(&s->random, n); }
bool    hunt_one_in(hunt_scene *s, int64_t n) { return draw(&s->random, n) == 0; }

hunt_program hunt_program_of(uint64_t seed)
{
    uint64_t r = hunt_hash(seed, 1);
    hunt_program p = { .seed = seed, .large = draw(&r, 10) == 0 };
    int64_t walk = draw(&r, 8);
    p.walk = walk == 0 ? HUNT_TWICE : walk == 1 ? HUNT_RECORDED : HUNT_ONCE;
    /* Kernels change at 8 and 16 rows, so a third of the programs has more than 8 sequences. */
    p.n = (int)(p.large ? 1 + draw(&r, 24) : draw(&r, 3) ? draw(&r, 8) : 9 + draw(&r, 16));
    p.width = 1 + draw(&r, p.large ? 48 : 9);
    int64_t longest = 1 + draw(&r, p.large ? 40 : 10);
    for (int s = 0; s < p.n; s++) {
        p.len[s] = (int32_t)(draw(&r, 5) ? draw(&r, longest + 1) : 0);
        p.id[s] = 7 * s + 3;
    }
    p.steps = (int)(1 + draw(&r, p.large ? 4 : HUNT_STEPS));
    for (int i = 0; i < p.steps; i++) {
        uint64_t own = hunt_hash(seed, (uint64_t)(100 + i));
        p.step[i] =
            (hunt_step){ (int)draw(&r, hunt_operators_known()), own, draw(&r, 2) ? (int)draw(&r, i + 1) : i };
    }
    return p;
}

hunt_program hunt_without_step(const hunt_program *p, int step)
{
    hunt_program q = *p;
    q.steps--;
    for (int i = step; i < q.steps; i++) {
        q.step[i] = p->step[i + 1];
        q.step[i].other -= q.step[i].other > step;
    }
    return q;
}

hunt_program hunt_without_sequences(const hunt_program *p, int from, int n)
{
    hunt_program q = *p;
    q.n -= n;
    for (int s = from; s < q.n; s++)
        q.len[s] = p->len[s + n], q.id[s] = p->id[s + n];
    return q;
}
