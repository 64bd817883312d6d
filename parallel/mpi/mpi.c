/* mpi.c - the transport over MPI. It is compiled once against Open MPI and once against MPICH, because their
 * ABIs differ. transport.c opens the library that fits the launcher.
 *
 * MPI waits by spinning. On a shared processor that takes time from the other rank, so a waiting rank yields
 * between checks.
 *
 * With ULFM the remaining ranks can continue after a loss. ULFM is the fault tolerance that MPI 4 leaves to
 * implementations (Bland et al. 2013); in Open MPI 5, mpirun --with-ft ulfm enables it. The plug-in looks up
 * its functions when it is opened, so a plug-in that was built with an older MPI can use them. */
#include <dlfcn.h>
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "parallel/transport.h"

enum { CHUNK = 1 << 20, SPINS = 32 };  /* CHUNK: bytes of a block of a message whose size exceeds an int */

static MPI_Comm ranks;
static bool ours;                                /* this plug-in has initialised MPI, and finalises it */
/* [room] requests by number; free slots form a list */
static struct { MPI_Request request; int next; } *slot;
static int room, spare = -1;

#ifdef OPEN_MPI
#define NAME "openmpi"
#else
#define NAME "mpich"
#endif

/* ---- the beginning and the end ---- */
/* Prints the reason, and ends the process by the alarm's signal. */
static void leave(int alarm_)
{
    static const char text[] = "weft: another rank has not ended, and MPI_Finalize timed out; this rank has "
                               "finished its work and exits\n";
    signal(alarm_, SIG_DFL);
    ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
    (void)written;
    raise(alarm_);
}

/* Finalises MPI after a successful end. After a failure it does not, because MPI_Finalize would wait for the
 * other ranks; the launcher ends them when a rank disappears. MPI_Finalize also waits without end if another
 * rank has stopped, so an alarm limits it to the timeout. */
static void finalise(int status, void *nothing)
{
    enum { USUAL = 600 };
    const char *setting = secure_getenv("WEFT_PARALLEL_TIMEOUT");
    double seconds = setting ? strtod(setting, NULL) : USUAL;
    int over = 1;
    (void)nothing;
    MPI_Finalized(&over);
    if (status || over)
        return;
    signal(SIGALRM, leave);
    alarm(seconds >= 1 && seconds < 1e6 ? (unsigned)seconds : USUAL);
    MPI_Finalize();
    alarm(0);
}

static bool initialise(char *reason, size_t size)
{
    int initialised = 0, level = 0;
    MPI_Initialized(&initialised);
    if (initialised)
        MPI_Query_thread(&level);
    else if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS) {
        snprintf(reason, size, "MPI_Init_thread failed");
        return false;
    }
    if (level < MPI_THREAD_FUNNELED) {
        snprintf(
            reason, size,
            "MPI: thread level %d; expected MPI_THREAD_FUNNELED, %d, because a context computes in several "
            "threads",
            level, MPI_THREAD_FUNNELED);
        return false;
    }
    ours = !initialised;
    return !ours || !on_exit(finalise, NULL);
}

/* ---- requests ---- */
static int new_slot(void)
{
    if (spare < 0) {
        int more = room ? 2 * room : 64;
        void *larger = realloc(slot, (size_t)more * sizeof *slot);
        if (!larger)
            return -1;
        slot = larger;
        for (int i = room; i < more; i++) {
            slot[i].request = MPI_REQUEST_NULL;
            slot[i].next = spare;
            spare = i;
        }
        room = more;
    }
    int taken = spare;
    spare = slot[taken].next;
    slot[taken].request = MPI_REQUEST_NULL;
    return taken;
}

static int freed(int number, int answer)
{
    slot[number].request = MPI_REQUEST_NULL;
    slot[number].next = spare;
    spare = number;
    return answer;
}

static int posted(int number, int result)
{
    return result == MPI_SUCCESS ? number : freed(number, -1);
}

/* Returns a type of n bytes, because MPI counts in int. */
static MPI_Datatype kind_of(size_t n)
{
    MPI_Datatype chunk, all, part[2];
    MPI_Aint from[2] = { 0, (MPI_Aint)(n / CHUNK * CHUNK) };
    int length[2] = { (int)(n / CHUNK), (int)(n % CHUNK) };
    MPI_Type_contiguous(CHUNK, MPI_BYTE, &chunk);
    part[0] = chunk, part[1] = MPI_BYTE;
    MPI_Type_create_struct(2, length, from, part, &all);
    MPI_Type_commit(&all);
    MPI_Type_free(&chunk);
    return all;
}

static int post(bool send, int peer, int tag, void *bytes, size_t n)
{
    int number = new_slot();
    if (number < 0)
        return -1;
    bool plain = n < INT32_MAX;
    MPI_Datatype kind = plain ? MPI_BYTE : kind_of(n);
    int count = plain ? (int)n : 1;
    MPI_Request *r = &slot[number].request;
    int result = send ? MPI_Isend(bytes, count, kind, peer, tag, ranks, r)
                      : MPI_Irecv(bytes, count, kind, peer, tag, ranks, r);
    if (!plain)
        MPI_Type_free(&kind);
    return posted(number, result);
}

static int post_send(int to, int tag, const void *bytes, size_t n)
{
    return post(true, to, tag, (void *)(uintptr_t)bytes, n);
}
static int post_recv(int from, int tag, void *bytes, size_t n) { return post(false, from, tag, bytes, n); }

static int broadcast(int root, void *bytes, size_t n)
{
    int number = n < INT32_MAX ? new_slot() : -1;
    return number < 0 ?
               -1 :
               posted(number, MPI_Ibcast(bytes, (int)n, MPI_BYTE, root, ranks, &slot[number].request));
}

static int test(int number)
{
    int over = 0;
    if (MPI_Test(&slot[number].request, &over, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        return freed(number, WEFT__LOST);
    return over ? freed(number, 1) : 0;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int wait_for(int number, double seconds)
{
    double deadline = now() + seconds;
    do {
        for (int i = 0; i < SPINS; i++) {
            int state = test(number);
            if (state)
                return state;
        }
        sched_yield();
    } while (now() < deadline);
    return 0;
}

/* ---- continuing after a loss ---- */
static int (*revoke_by)(MPI_Comm), (*shrink_to)(MPI_Comm, MPI_Comm *);

static void find_ulfm(void)
{
    const char *setting = secure_getenv("OMPI_MCA_mpi_ft_enable");
    Dl_info mpi;
    if (!setting || (strcmp(setting, "1") && strcmp(setting, "true")) ||
        !dladdr((void *)(uintptr_t)MPI_Init, &mpi))
        return;
    void *library = dlopen(mpi.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    void *symbol[2] = { library ? dlsym(library, "MPIX_Comm_revoke") : NULL,
                        library ? dlsym(library, "MPIX_Comm_shrink") : NULL };
    memcpy(&revoke_by, &symbol[0], sizeof revoke_by);
    memcpy(&shrink_to, &symbol[1], sizeof shrink_to);
}

/* Ends all requests, so that MPI no longer writes into their memory. */
static void end_requests(void)
{
    double deadline = now() + 5;
    for (int i = 0; i < room; i++)
        while (slot[i].request != MPI_REQUEST_NULL)
            if (test(i) == 0 && now() > deadline)
                freed(i, 0);
}

static bool shrink(weft__world *world)
{
    MPI_Comm fewer;
    revoke_by(ranks);
    end_requests();
    if (shrink_to(ranks, &fewer) != MPI_SUCCESS)
        return false;
    ranks = fewer;  /* the old communicator is not freed, because that requires the lost ranks */
    MPI_Comm_set_errhandler(ranks, MPI_ERRORS_RETURN);
    MPI_Comm_rank(ranks, &world->rank), MPI_Comm_size(ranks, &world->ranks);
    return true;
}

/* ---- joining ---- */
static weft__transport mpi;                      /* defined below */

static bool open_mpi(weft__world *world, char *version, size_t version_size, char *reason, size_t why_size)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int n = 0;
    MPI_Comm near;
    if (!initialise(reason, why_size))
        return false;
    find_ulfm();
    if (ours)
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_dup(MPI_COMM_WORLD, &ranks);        /* separates weft's messages from the program's */
    MPI_Comm_set_errhandler(ranks, MPI_ERRORS_RETURN);
    MPI_Comm_rank(ranks, &world->rank), MPI_Comm_size(ranks, &world->ranks);
    MPI_Comm_split_type(ranks, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &near);
    MPI_Comm_rank(near, &world->local_rank), MPI_Comm_size(near, &world->local_ranks);
    MPI_Comm_free(&near);
    MPI_Get_library_version(text, &n);
    text[strcspn(text, ",\n")] = 0;
    snprintf(version, version_size, "%.100s%s", text, shrink_to ? ", ULFM" : "");
    mpi.shrink = revoke_by && shrink_to ? shrink : NULL;
    return true;
}

static void give_up(int status) { MPI_Abort(ranks, status); }

static weft__transport mpi = { .abi = WEFT__TRANSPORT_ABI,
                               .name = NAME,
                               .open = open_mpi,
                               .post_send = post_send,
                               .post_recv = post_recv,
                               .test = test,
                               .wait = wait_for,
                               .broadcast = broadcast,
                               .abort = give_up };

__attribute__((visibility("default"))) const weft__transport *weft_transport_open_v1(void)
{
    return &mpi;
}
