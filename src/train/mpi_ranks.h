// Ranks that MPI connects (MPI Forum 2021). Only mpi_ranks.cpp calls MPI.
#pragma once

#include <memory>
#include <string>

#include "train/ranks.h"

namespace limpid {

// Returns "Open MPI v4.1.4", or "" for a build without MPI.
std::string mpi_version();

// Returns how many processes, this one included, mpirun (or another launcher of Open MPI or MPICH)
// started together, as the environment says. 1: this process was started alone.
int n_launched_processes();

// Connects to the other processes. Call it once in a process. Throws UnsupportedError for a build
// without MPI, ResourceError.
std::shared_ptr<Ranks> make_mpi_ranks();

}  // namespace limpid
