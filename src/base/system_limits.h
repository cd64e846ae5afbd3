// How much memory and how many processors this process may use. A container or a service sees the
// machine's memory and processors, but may use only what its control groups (version 2 or 1) allow,
// so both are read. `root` is for tests: a folder in the place of the system's root.
#pragma once

#include <cstdint>
#include <string>

namespace limpid {

// Bytes that can be allocated without swapping: the system's estimate (MemAvailable), or what the
// control group still allows if that is less. 0 when unknown.
uint64_t available_memory(const std::string& root = "");

// The most bytes that this process could have: those of the machine, or the control group's limit
// if that is less. 0 when unknown.
uint64_t total_memory(const std::string& root = "");

// The processors whose time the control group grants: `docker --cpus 1.5` grants 1.5. 0: all.
double granted_processors(const std::string& root = "");

// How many processors this process may keep busy, at least 1: those that it is bound to, or as many
// as are granted, rounded up, if that is less. More threads would wait for each other's time.
int usable_cores(const std::string& root = "");

// Bytes of the second-level cache of a core. 0 when unknown.
int64_t second_level_cache();

// Bytes of the third-level cache that the first processor reads through. 0 when unknown. Not what
// sysconf says, which on AMD is the cache of the whole package: 384 MiB, where a core reads through
// 32.
uint64_t third_level_cache(const std::string& root = "");

// Gives pages that malloc keeps for later back to the system, where the C library can.
void return_free_memory();

// Lets all threads share malloc's free memory. The C library would give threads regions of their
// own, which saves waiting. But what one thread allocates another one frees, so each region grows
// to its own peak. For a program that runs for weeks, before it starts threads.
void share_free_memory();

}  // namespace limpid
