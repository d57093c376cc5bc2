// The module that a page loads: call/call.h over numbers. The host writes a request into memory
// that placet_take gives, calls placet_call, and reads the answer where placet_answer says.
#include <cstddef>
#include <exception>
#include <memory>
#include <string>

#include "call/call.h"
#include "catalog/catalog.h"
#include "catalog/memory.h"
#include "report/plans.h"

namespace {

constexpr int kFault = 3;  // ours; the text says which

std::string request;
placet::Answer answer;

const placet::Catalog& catalogue() {
  static const placet::Catalog kCatalogue{.root = "/data",
                                          .memory = std::make_shared<placet::CatalogMemory>()};
  return kCatalogue;
}

}  // namespace

extern "C" {

// Told how a search goes on.
[[clang::import_module("placet"), clang::import_name("progress")]] void placet_progress(
    const char* text, std::size_t size);

// Asked whether it shall end with the best so far: whatever but 0 says so.
[[clang::import_module("placet"), clang::import_name("stopped")]] int placet_stopped();

// Room for a request of so many bytes.
[[clang::export_name("placet_take")]] char* placet_take(std::size_t size) {
  request.assign(size, '\0');
  return request.data();
}

// Answers it: the status.
[[clang::export_name("placet_call")]] int placet_call() {
  const placet::PlanWatch watch{.stopped = [] { return placet_stopped() != 0; },
                                .progress =
                                    [](const placet::PlanProgress& found) {
                                      const std::string text = placet::progress_text(found);
                                      placet_progress(text.data(), text.size());
                                    }};
  try {
    answer = placet::call(catalogue(), request, watch);
  } catch (const std::exception& error) {
    answer = {.status = kFault, .document = error.what(), .warnings = {}};
  }
  return answer.status;
}

// Of the last answer: its document, and its warnings, where they stand and how long they are.
[[clang::export_name("placet_answer")]] const char* placet_answer() {
  return answer.document.data();
}
[[clang::export_name("placet_answer_size")]] std::size_t placet_answer_size() {
  return answer.document.size();
}
[[clang::export_name("placet_warnings")]] std::size_t placet_warnings() {
  return answer.warnings.size();
}
[[clang::export_name("placet_warning")]] const char* placet_warning(std::size_t which) {
  return answer.warnings[which].data();
}
[[clang::export_name("placet_warning_size")]] std::size_t placet_warning_size(std::size_t which) {
  return answer.warnings[which].size();
}

}  // extern "C"
