/* Counts what a server waits for FoundationDB. Preloaded by run.py --cluster-file.
 *
 * A round trip is a read that is sent while its transaction has no other read under way, the first read's
 * read version, or a commit. TRIPS names a file that holds three numbers of 64 bits: reads, round trips
 * and commits. */
#define _GNU_SOURCE
#define FDB_API_VERSION 730
#include <dlfcn.h>
#include <fcntl.h>
#include <foundationdb/fdb_c.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define SLOTS 65536

/* The reads of a transaction that are under way, and whether it has read. */
struct transaction {
    FDBTransaction *at;
    int under_way, has_read;
};
/* A read that is under way. */
struct read {
    FDBFuture *at;
    struct transaction *of;
};

static struct transaction transactions[SLOTS];
static struct read reads[SLOTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t *counts;
enum { READS, TRIPS, COMMITS };

__attribute__((constructor)) static void open_counts(void) {
    const char *name = getenv("TRIPS");
    int file = name ? open(name, O_RDWR | O_CREAT, 0600) : -1;
    if (file < 0 || ftruncate(file, 4096)) abort();
    counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
}

static struct transaction *of(FDBTransaction *at) {
    size_t slot = ((uintptr_t)at >> 4) % SLOTS;
    while (transactions[slot].at && transactions[slot].at != at) slot = (slot + 1) % SLOTS;
    transactions[slot].at = at;
    return &transactions[slot];
}

static FDBFuture *note(FDBTransaction *at, FDBFuture *future) {
    pthread_mutex_lock(&lock);
    struct transaction *own = of(at);
    counts[READS]++;
    counts[TRIPS] += own->under_way++ == 0;
    counts[TRIPS] += !own->has_read;
    own->has_read = 1;
    size_t slot = ((uintptr_t)future >> 4) % SLOTS;
    while (reads[slot].at) slot = (slot + 1) % SLOTS;
    reads[slot] = (struct read){future, own};
    pthread_mutex_unlock(&lock);
    return future;
}

#define REAL(name) static __typeof__(&name) real; if (!real) real = dlsym(RTLD_NEXT, #name)

FDBFuture *fdb_transaction_get(FDBTransaction *t, uint8_t const *key, int length, fdb_bool_t snapshot) {
    REAL(fdb_transaction_get);
    return note(t, real(t, key, length, snapshot));
}

FDBFuture *fdb_transaction_get_range(FDBTransaction *t, uint8_t const *begin, int begin_length,
                                     fdb_bool_t begin_or_equal, int begin_offset, uint8_t const *end,
                                     int end_length, fdb_bool_t end_or_equal, int end_offset, int limit,
                                     int target_bytes, FDBStreamingMode mode, int iteration,
                                     fdb_bool_t snapshot, fdb_bool_t reverse) {
    REAL(fdb_transaction_get_range);
    return note(t, real(t, begin, begin_length, begin_or_equal, begin_offset, end, end_length, end_or_equal,
                        end_offset, limit, target_bytes, mode, iteration, snapshot, reverse));
}

/* A future that has been answered, or is given up. */
static void end(FDBFuture *future) {
    pthread_mutex_lock(&lock);
    size_t slot = ((uintptr_t)future >> 4) % SLOTS;
    while (reads[slot].at && reads[slot].at != future) slot = (slot + 1) % SLOTS;
    if (reads[slot].at) {
        reads[slot].of->under_way--;
        /* What follows moves up, so that it is still found. */
        for (size_t free = slot, next = (slot + 1) % SLOTS;; next = (next + 1) % SLOTS) {
            reads[free].at = NULL;
            if (!reads[next].at) break;
            size_t home = ((uintptr_t)reads[next].at >> 4) % SLOTS;
            if ((next - home) % SLOTS >= (next - free) % SLOTS) {
                reads[free] = reads[next];
                free = next;
            }
        }
    }
    pthread_mutex_unlock(&lock);
}

fdb_error_t fdb_future_get_value(FDBFuture *f, fdb_bool_t *is_there, uint8_t const **value, int *length) {
    REAL(fdb_future_get_value);
    end(f);
    return real(f, is_there, value, length);
}

fdb_error_t fdb_future_get_keyvalue_array(FDBFuture *f, FDBKeyValue const **rows, int *count,
                                          fdb_bool_t *has_more) {
    REAL(fdb_future_get_keyvalue_array);
    end(f);
    return real(f, rows, count, has_more);
}

void fdb_future_destroy(FDBFuture *future) {
    REAL(fdb_future_destroy);
    end(future);
    real(future);
}

FDBFuture *fdb_transaction_commit(FDBTransaction *t) {
    REAL(fdb_transaction_commit);
    pthread_mutex_lock(&lock);
    counts[COMMITS]++;
    counts[TRIPS] += 1 + !of(t)->has_read;
    pthread_mutex_unlock(&lock);
    return real(t);
}

void fdb_transaction_destroy(FDBTransaction *t) {
    REAL(fdb_transaction_destroy);
    pthread_mutex_lock(&lock);
    of(t)->has_read = of(t)->under_way = 0;
    pthread_mutex_unlock(&lock);
    real(t);
}
