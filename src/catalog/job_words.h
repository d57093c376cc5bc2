// Words of a job inside of other files. For the readers of this folder.
#pragma once

#include "catalog/job.h"
#include "catalog/reader.h"

namespace placet {

/// The words of a job as they stand in an object. Paths are left as they are.
JobRequest read_job_words(const Reader& reader);

}  // namespace placet
