// Job files in JSON.
#include "job_target.h"

namespace placet::fuzz {

std::string_view target_name() { return "job_json"; }

void read_one(std::string_view text) { read_job(write_scratch("job.json", text)); }

}  // namespace placet::fuzz
