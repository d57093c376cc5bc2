// Jobs that dialects can say, for the tests of this folder.
#pragma once

#include "catalog/job.h"

namespace placet {

/// 64 samples of 4096 tokens on 8 devices.
JobRequest base_request(const std::string& placement);

/// import(export(job)) = job for so many random jobs of each dialect.
void round_trips(unsigned jobs);

}  // namespace placet
