// The best plan that a dialect can say, as its files.
#pragma once

#include <string>
#include <vector>

#include "catalog/job.h"
#include "report/plan_sheet.h"

namespace placet {

/// Where the files of a plan go.
struct PlanExport {
  std::string dialect;  // empty: nothing is asked for
  std::string folder;   // empty: they are printed
};

/// Refuses a folder without a dialect, and files printed beside JSON.
void check_plan_export(const PlanExport& asked, const std::string& format);

/// Writes or prints the files of the first plan that the dialect can say, and tells which one it
/// is. Gives kBad where it can say none, and prints why on standard error.
int export_plan(const Catalog& catalog, const PlanExport& asked, const JobRequest& request,
                const PlanSheet& sheet);

}  // namespace placet
