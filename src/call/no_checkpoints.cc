// Where there are no files there are no checkpoints.
#include "call/checkpoints.h"
#include "units/error.h"

namespace placet {
namespace {

[[noreturn]] void refuse_files(const std::string& where) {
  throw InputError({.where = where, .problem = "needs files, and a page has none"});
}

}  // namespace

void open_checkpoint(RunRequest& request) {
  if (!request.resume.empty()) refuse_files("resume");
}
std::string mode_of(const RunRequest& request) {
  return request.mode.empty() ? "canonical" : request.mode;
}
std::vector<std::string> meaning_words_of(const RunRequest& request) { return request.meanings; }
void require_place(const RunRequest& request) {
  if (!request.save.empty()) refuse_files("save");
}
void resume_and_save(const RunRequest&, const Program&, RunOptions&) {}
ReshardedRun resharded(const Catalog&, const ReshardRequest&) { refuse_files("reshard"); }

}  // namespace placet
