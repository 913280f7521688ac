/* Steps of a parallel program in MPI, as net.collective runs them. Usage: mpi_steps OPERATION STEPS
   DELAY_NS: rank 1 sleeps DELAY_NS in each step. Rank 0 prints the mean step and its mean waiting (ns). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

int main(int argc, char **argv) {
    enum { MESSAGE = 1024, RANKS_MAX = 8 };
    static char out[MESSAGE * RANKS_MAX], in[MESSAGE * RANKS_MAX];
    int rank, steps = atoi(argv[2]), exchanges = !strcmp(argv[1], "all_to_all");
    long delay_ns = atol(argv[3]);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    double first = now(), waited = 0;
    for (int step = 0; step < steps; step++) {
        struct timespec delay = {delay_ns / 1000000000, delay_ns % 1000000000};
        if (rank == 1 && delay_ns) nanosleep(&delay, NULL);
        double entered = now();
        if (exchanges) MPI_Alltoall(out, MESSAGE, MPI_CHAR, in, MESSAGE, MPI_CHAR, MPI_COMM_WORLD);
        else MPI_Barrier(MPI_COMM_WORLD);
        waited += now() - entered;
    }
    if (rank == 0) printf("%f %f\n", (now() - first) / steps, waited / steps);
    MPI_Finalize();
    return 0;
}
