#include "cli/plan_export.h"

#include <fmt/format.h>

#include "call/plans.h"
#include "cli/export_files.h"
#include "cli/output.h"
#include "cli/program.h"
#include "interop/export.h"
#include "units/error.h"

namespace placet {
void check_plan_export(const PlanExport& asked, const std::string& format) {
  if (asked.dialect.empty() && !asked.folder.empty()) {
    throw InputError({.where = "--out",
                      .value = asked.folder,
                      .problem = "is the folder of no files",
                      .allowed = "--export DIALECT beside it"});
  }
  if (!asked.dialect.empty() && asked.folder.empty() && format == "json") {
    throw InputError({.where = "--export",
                      .value = asked.dialect,
                      .problem = "has no folder to write to, and JSON is printed",
                      .allowed = "--out DIR beside it"});
  }
}

int export_plan(const Catalog& catalog, const PlanExport& asked, const JobRequest& request,
                const PlanSheet& sheet) {
  if (asked.dialect.empty() || sheet.plans.empty()) return kGood;
  std::string refusals;
  for (std::size_t i = 0; i < sheet.plans.size(); ++i) {
    const Exported exported =
        export_job(catalog, request_of_plan(request, sheet, sheet.plans[i]), asked.dialect);
    if (!exported.unsaid.empty()) {
      refusals += fmt::format("plan {}: {}", i + 1, exported_text(exported));
      continue;
    }
    const std::string what = fmt::format("plan {} as {}", i + 1, exported.dialect);
    if (asked.folder.empty()) {
      print("\n" + what + "\n" + exported_text(exported));
    } else {
      write_exported(exported, asked.folder, "--out");
      print_warning(what + " is in " + asked.folder);
    }
    return kGood;
  }
  print_warning("no plan can be said:\n" + refusals);
  return kBad;
}

}  // namespace placet
