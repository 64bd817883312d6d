/* streaming_server.h - threads that serve one model: requests wait in a line for each thread, which takes
 * what is there, up to a batch, and answers all of it by one step. A context is one thread's, so each has
 * one. */
#ifndef EXAMPLES_STREAMING_SERVER_H
#define EXAMPLES_STREAMING_SERVER_H
#include "streaming_model.h"

/* Who asks: one request at a time, for the next token after `token`. */
typedef struct user {
    state s;
    int64_t number, left;                        /* requests that are still to come */
    int thread;                                  /* that serves it */
    int32_t token, answer;
    double asked;                                /* when */
    struct user *next;                           /* in a line */
} user;

typedef struct server server;
server *server_open(const settings *, int threads, int64_t batch);
void    server_close(server *);
const model *server_model(const server *, int thread);
/* The request of a user; its answer, and its state, are there once server_answered has given it back. */
void    server_ask(server *, user *);
/* Those that were answered, a list; NULL: none, if it is not to wait. */
user   *server_answered(server *, bool wait);

/* Steps, answers, and the microseconds within which that share of the answers came. */
typedef struct { int64_t steps, answers; } served;
served  server_served(const server *);
double  server_within(const server *, double share);
#endif
