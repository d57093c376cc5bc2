// Jobs that dialects can say, for the tests of this folder.
#pragma once

#include <string>
#include <vector>

#include "catalog/job.h"

namespace placet {

/// 64 samples of 4096 tokens on 8 devices.
JobRequest base_request(const std::string& placement);

/// The dialects of which this draws jobs.
std::vector<std::string> sayable_dialects();

/// import(export(job)) = job for so many random jobs of a dialect, of all its kinds in turn.
void round_trips(const std::string& dialect, unsigned jobs);

}  // namespace placet
