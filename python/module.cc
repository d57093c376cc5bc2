// The module placet._placet: a catalogue that remembers what it read, and the one entry of calls.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <csignal>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "call/call.h"
#include "catalog/catalog.h"
#include "catalog/memory.h"
#include "report/plans.h"

namespace nb = nanobind;

namespace {

volatile std::sig_atomic_t interrupted = 0;

extern "C" void note_interrupt(int) { interrupted = 1; }

/// While a search runs, an interrupt ends it with the best so far; a second one is Python's again.
class InterruptWatch {
 public:
  explicit InterruptWatch(bool watches) : watches_(watches) {
    interrupted = 0;
    if (!watches_) return;
    struct sigaction action {};
    action.sa_handler = note_interrupt;
    sigaction(SIGINT, &action, &before_);
  }
  ~InterruptWatch() {
    if (watches_) sigaction(SIGINT, &before_, nullptr);
  }
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

 private:
  bool watches_;
  struct sigaction before_ {};
};

/// Tells a callable of Python how a search goes on. What it throws stops the search.
class ProgressTeller {
 public:
  explicit ProgressTeller(nb::object callable) : callable_(std::move(callable)) {}

  bool failed() const { return failed_; }

  void tell(const placet::PlanProgress& progress) {
    if (failed_) return;
    const nb::gil_scoped_acquire lock;
    try {
      nb::dict told;
      told["space"] = progress.counts.space;
      told["visited"] = progress.counts.visited;
      told["bounded"] = progress.counts.bounded;
      told["text"] = placet::progress_text(progress);
      callable_(told);
    } catch (...) {
      error_ = std::current_exception();
      failed_ = true;
    }
  }

  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  nb::object callable_;
  std::exception_ptr error_;
  std::atomic<bool> failed_ = false;
};

class Catalogue {
 public:
  Catalogue(const std::string& root, const std::vector<std::string>& overlays)
      : catalog_{.root = root, .overlays = {overlays.begin(), overlays.end()}} {
    forget();
  }

  void forget() { catalog_.memory = std::make_shared<placet::CatalogMemory>(); }

  nb::tuple call(const std::string& request, const nb::object& progress, bool interruptible) {
    const placet::Catalog catalog = catalog_;  // forget() may come from another thread
    ProgressTeller teller(progress);
    placet::PlanWatch watch{.stopped = [&] { return interrupted != 0 || teller.failed(); }};
    if (!progress.is_none()) {
      watch.progress = [&](const placet::PlanProgress& found) { teller.tell(found); };
    }
    placet::Answer answer;
    {
      const nb::gil_scoped_release free;
      const InterruptWatch interrupts(interruptible);
      answer = placet::call(catalog, request, watch);
    }
    teller.rethrow();
    nb::list warnings;
    for (const std::string& warning : answer.warnings) warnings.append(warning);
    return nb::make_tuple(answer.status, answer.document, warnings);
  }

 private:
  placet::Catalog catalog_;
};

}  // namespace

NB_MODULE(_placet, module) {
  nb::class_<Catalogue>(module, "Catalogue")
      .def(nb::init<const std::string&, const std::vector<std::string>&>(), nb::arg("root"),
           nb::arg("overlays"))
      .def("forget", &Catalogue::forget)
      .def("call", &Catalogue::call, nb::arg("request"), nb::arg("progress").none(),
           nb::arg("interruptible"));
  module.def("callable", [] {
    nb::list names;
    for (const std::string& name : placet::callable()) names.append(name);
    return names;
  });
}
