/* The innermost loops of some benchmarks, written a second time. Usage: counterparts WHAT [BYTES];
   prints one figure (two more for `clock`): nanoseconds of an operation, or operations per second. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LINE 64
#define READS 2000000
#define CHAINS 4
typedef uint64_t lanes __attribute__((vector_size(32)));

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Mean, minimum and 99.9th percentile; counting each look is a part of it, as in the benchmark. */
static void look_at_the_clock(void) {
    static uint64_t counts[4096];
    int64_t first = now(), last = first;
    for (int i = 0; i < READS; i++) {
        int64_t read = now(), step = read - last;
        if (step < 4096) counts[step]++;
        last = read;
    }
    double mean = (double)(last - first) / READS;
    int least = 0, high = 4095;
    while (!counts[least]) least++;
    for (uint64_t above = 0; (above += counts[high]) <= READS / 1000; high--);
    printf("%f %d %d\n", mean, least, high);
}

static void *large(size_t bytes) {
    void *memory = aligned_alloc(2 << 20, (bytes + (2 << 20) - 1) >> 21 << 21);
    madvise(memory, bytes, MADV_HUGEPAGE);
    memset(memory, 1, bytes);
    return memory;
}

static double steps(void) {
    volatile uint64_t sink;
    uint64_t state = 1, count = 20000000;
    int64_t began = now();
    for (uint64_t i = 0; i < count; i++) {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        state *= 0x2545F4914F6CDD1DULL;
    }
    sink = state;
    (void)sink;
    return count * 1e9 / (now() - began);
}

static double read_bytes(size_t bytes) {
    lanes *buffer = large(bytes), a = {0}, b = a, c = a, d = a;
    size_t rounds = ((size_t)2 << 30) / bytes, words = bytes / sizeof *buffer;
    int64_t began = now();
    for (size_t round = 0; round < rounds; round++) {
        for (size_t i = 0; i < words; i += 4) {
            a += buffer[i];
            b += buffer[i + 1];
            c += buffer[i + 2];
            d += buffer[i + 3];
        }
        __asm__ volatile("" : "+x"(a), "+x"(b), "+x"(c), "+x"(d) : : "memory");
    }
    return (double)rounds * bytes * 1e9 / (now() - began);
}

/* A random cycle through all lines; chains begin at even distances on it. */
static double chase(size_t bytes, int chains) {
    uint64_t state = 1;
    size_t lines = bytes / LINE, *order = malloc(lines * sizeof *order);
    char *memory = large(bytes), *at[CHAINS];
    for (size_t i = 0; i < lines; i++) order[i] = i;
    for (size_t i = lines - 1; i > 0; i--) {
        state = state * 6364136223846793005ULL + 1;
        size_t j = (state >> 33) % (i + 1), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
    for (size_t i = 0; i < lines; i++)
        *(char **)(memory + order[i] * LINE) = memory + order[(i + 1) % lines] * LINE;
    for (int chain = 0; chain < chains; chain++)
        at[chain] = memory + order[lines / chains * chain] * LINE;
    size_t hops = (bytes > 1 << 20 ? 4000000 : 20000000) / chains;
    int64_t began = now();
    if (chains == 1) {
        char *place = at[0];
        for (size_t i = 0; i < hops; i++) place = *(char **)place;
        __asm__ volatile("" : : "r"(place));
    } else {
        for (size_t i = 0; i < hops; i++)
            for (int chain = 0; chain < CHAINS; chain++) at[chain] = *(char **)at[chain];
        __asm__ volatile("" : : "m"(at));
    }
    return (double)(now() - began) / ((double)hops * chains);
}

static double get_pid(void) {
    int64_t began = now();
    for (int i = 0; i < 1000000; i++) syscall(SYS_getpid);
    return (now() - began) / 1e6;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    size_t bytes = argc > 2 ? strtoull(argv[2], NULL, 10) : 16384;
    if (!strcmp(what, "clock")) look_at_the_clock();
    else if (!strcmp(what, "steps")) printf("%f\n", steps());
    else if (!strcmp(what, "read")) printf("%f\n", read_bytes(bytes));
    else if (!strcmp(what, "chase")) printf("%f\n", chase(bytes, 1));
    else if (!strcmp(what, "touch")) printf("%f\n", 1e9 / chase(bytes, CHAINS));
    else if (!strcmp(what, "getpid")) printf("%f\n", get_pid());
    else return 2;
    return 0;
}
