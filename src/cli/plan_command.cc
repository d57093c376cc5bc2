// placet plan MODEL --cluster ...: the best placements, and the proof that there is no better one.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>

#include "call/plans.h"
#include "cli/command.h"
#include "cli/data_flag.h"
#include "cli/job_flags.h"
#include "cli/output.h"
#include "cli/plan_export.h"
#include "report/plans.h"

namespace placet {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kProgressSeconds = 0.2;

struct PlanCall {
  PlanRequest request;
  bool json = false;
  std::string html;
  PlanExport files;
};

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// --- interrupts

volatile std::sig_atomic_t interrupted = 0;

extern "C" void note_interrupt(int) { interrupted = 1; }

/// The first interrupt stops the search, the second one the program.
class InterruptWatch {
 public:
  InterruptWatch() {
    interrupted = 0;
    struct sigaction action {};
    action.sa_handler = note_interrupt;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &action, &before_);
  }
  ~InterruptWatch() { sigaction(SIGINT, &before_, nullptr); }
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

 private:
  struct sigaction before_ {};
};

/// A line on a terminal's standard error, overwritten as the search goes on.
class ProgressLine {
 public:
  ~ProgressLine() {
    if (shown_) std::fputs("\r\x1b[K", stderr);
  }
  void show(const PlanProgress& progress) {
    if (!terminal_ || since(last_) < kProgressSeconds) return;
    last_ = Clock::now();
    shown_ = true;
    std::fprintf(stderr, "\r\x1b[K%s", progress_text(progress).c_str());
    std::fflush(stderr);
  }

 private:
  bool terminal_ = isatty(STDERR_FILENO) == 1;
  bool shown_ = false;
  Clock::time_point last_ = Clock::now();
};

// --- the call

int plan_job(const PlanCall& call, const JobRequest& request) {
  check_plan_export(call.files, call.json ? "json" : "text");
  PlannedJob planned;
  {
    const InterruptWatch watch;
    ProgressLine line;
    planned = planned_of(called_catalog(), call.request, request,
                         {.stopped = [] { return interrupted != 0; },
                          .progress = [&](const PlanProgress& progress) { line.show(progress); }});
  }
  const PlanSheet& sheet = planned.sheet;
  if (!call.html.empty()) write_file(call.html, plans_html(sheet), "--html");
  print(call.json ? plans_json(sheet) : plans_text(sheet, output_style()));
  const int written = export_plan(called_catalog(), call.files, request, sheet);
  return sheet.plans.empty() ? kBad : written;
}

/// What is searched, and which plans are wanted of it.
void add_search_flags(CLI::App* command, PlanRequest& request) {
  command->add_option("--goal", request.goal, "What is to be least: time, memory or cost")
      ->type_name("GOAL")
      ->check(CLI::IsMember({"time", "memory", "cost"}));
  command->add_option("--top", request.top, "How many plans (5)")
      ->type_name("N")
      ->check(CLI::Range(1, 100));
  command
      ->add_option("--fix", request.fix,
                   "Fix these axes, such as \"tp=8 pp=4:1f1b\"; the rest is searched")
      ->type_name("AXES");
  command
      ->add_option("--require", request.require,
                   "Require (sp) or forbid (no-offload) features, comma-separated")
      ->type_name("TERMS");
  command
      ->add_option("--max-memory", request.max_memory,
                   "Part of each device's memory that plans may fill (0.95)")
      ->type_name("FRACTION");
  command->add_flag("--allow-tight", request.allow_tight,
                    "Also plans that fill the device, or run only as the allocator gives cached "
                    "blocks back");
}

/// What is told of the plans beside themselves: price, other sizes, the trade-off.
void add_outlook_flags(CLI::App* command, PlanRequest& request) {
  command->add_option("--tokens", request.tokens, "Tokens to train on: steps, days and price (15T)")
      ->type_name("N");
  command
      ->add_option("--price", request.price,
                   "US dollars of a device's hour: 2.5, or h100-sxm=2.5,a100-80gb-sxm=1.2")
      ->type_name("DEVICE=USD");
  command
      ->add_option(
          "--goodput", request.goodput,
          "Part of the time that makes progress (failures, restarts and checkpoints take the "
          "rest), for days and price of --tokens: 0.9")
      ->type_name("FRACTION")
      ->check(CLI::Range(0.01, 1.0));
  command
      ->add_option("--scale", request.scale,
                   "Numbers of devices to find the best plan of, too: 64,128,256")
      ->type_name("N,N");
  command
      ->add_option("--front", request.front,
                   "Show up to N plans on the time/memory trade-off (Pareto front)")
      ->type_name("N")
      ->check(CLI::Range(1, 50));
  command
      ->add_option(
          "--front-step", request.front_step,
          "Least memory saved between plans of --front, as a fraction (0.02); 0: every point")
      ->type_name("FRACTION")
      ->check(CLI::Range(0.0, 0.9));
}

}  // namespace

void add_plan_command(CLI::App& program, Action& action) {
  auto call = std::make_shared<PlanCall>();
  CLI::App* command = program.add_subcommand(
      "plan", "The best placements of a model on a cluster, and why no other is better");
  add_job_flags(*command, call->request.flags);
  add_search_flags(command, call->request);
  add_outlook_flags(command, call->request);
  command
      ->add_option("--export", call->files.dialect,
                   "The files of the best plan that this dialect can say")
      ->type_name("DIALECT");
  command->add_option("--out", call->files.folder, "Write the files of --export into this folder")
      ->type_name("DIR");
  command->add_option("--html", call->html, "Write a self-contained page")->type_name("FILE");
  command->add_flag("--json", call->json, "Print JSON and nothing else on standard output");
  command->footer(
      "\nExamples:\n"
      "  placet plan llama-3.1-70b --cluster h100-sxm:8 --seq 8192 --global-batch 512\n"
      "  placet plan llama-3.1-8b --cluster h100-sxm:1 --seq 8192 --global-batch 128 \\\n"
      "      --fix \"tp=2\" --require no-offload --max-memory 0.9\n"
      "  placet plan llama-3.1-8b --cluster h100-sxm:1 --seq 8192 --global-batch 128 \\\n"
      "      --tokens 15T --price 2.5 --scale 8,16,32 --front 6 --html plans.html\n");
  command->callback([call, &action] {
    action = on_request(
        call->request.flags, [call](const JobRequest& request) { return plan_job(*call, request); },
        AskedOf::what_to_train);
  });
}

}  // namespace placet
