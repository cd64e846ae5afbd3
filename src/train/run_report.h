// The report of a run: one HTML page without other files.
#pragma once

#include <string>

namespace limpid {

// Returns the report of a run, made from run.json and the records in its folder (run_folder.h):
// loss and held-out loss, learning rate, norm of the gradient, tokens a second, the sizes of
// weights and gradients over time, samples, settings. With `is_live`, the page has a script that
// asks its server for new measurements of a run that goes on. Without `is_live`, the page has no
// script and loads nothing. Throws ResourceError.
std::string run_report(const std::string& folder, bool is_live);

// Writes the report into the folder as report.html, unless nothing was measured. Throws
// ResourceError.
void write_run_report(const std::string& folder);

}  // namespace limpid
