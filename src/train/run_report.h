// The report of a run: one HTML page without other files.
#pragma once

#include <string>

namespace limpid {

// The report of a run, from what its folder holds (run.json and the records of run_folder.h): loss
// and held-out loss, learning rate, norm of the gradient, tokens a second, the sizes of weights and
// gradients over time, samples, settings. With `is_live` it is the page of a run that goes on,
// whose script asks the server that it comes from for what is new; without, it has no script and
// asks for nothing. Throws ResourceError.
std::string run_report(const std::string& folder, bool is_live);

// Writes the report into the folder as report.html, unless nothing was measured. Throws
// ResourceError.
void write_run_report(const std::string& folder);

}  // namespace limpid
