#include "report/plan_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "placement/share_list.h"
#include "report/derivation_text.h"
#include "report/human.h"

namespace placet {
namespace {

constexpr int kMostDecimals = 12;  // of a price

Bytes part_of(Bytes all, double fraction) {
  return bytes(static_cast<std::int64_t>(static_cast<double>(in_bytes(all)) * fraction));
}

std::string lack_words(const PlanSheet& sheet) {
  const PlanShortage& shortage = *sheet.shortage;
  switch (shortage.lack) {
    case PlanShortage::Lack::device:
      return "what is too small is the memory of the device";
    case PlanShortage::Lack::part_of_device:
      if (!sheet.max_memory_given) {
        return fmt::format(
            "the device has room for it, but less than {:g} % of its memory would "
            "be left; --allow-tight allows that",
            100 * kFitMargin);
      }
      return fmt::format("the device has room for it; --max-memory {:g} allows {} of it",
                         sheet.memory_fraction,
                         human_bytes(part_of(shortage.capacity, sheet.memory_fraction)));
    case PlanShortage::Lack::cached:
      return "it runs only because the allocator gives cached blocks back when the device is full; "
             "--allow-tight allows that";
    case PlanShortage::Lack::host:
      return fmt::format(
          "the device has room for it; what is too small is the host: it needs {} of host memory, "
          "and a host has {}",
          human_bytes(shortage.host_used), human_bytes(shortage.host_capacity));
  }
  return {};
}

double rate_of(const PlanFigures& figures, std::int64_t devices) {
  return figures.tokens / in_seconds(figures.step) / static_cast<double>(devices);
}

/// Tokens per second of the first row that has a plan, per device of it.
double first_rate(const PlanSheet& sheet) {
  const auto first = std::ranges::find_if(
      sheet.scale, [](const ScaleLine& line) { return line.plan.has_value(); });
  return first == sheet.scale.end() ? 0 : rate_of(first->plan->found.figures, first->devices);
}

}  // namespace

std::string plan_words(const PlanLine& plan) {
  return fmt::format("{} (micro-batch {}, recompute {})", with_short_shares(plan.placement),
                     plan.found.plan.micro_batch, plan.recompute);
}

std::string step_words(Seconds step) { return fmt::format("{:.4g} s", in_seconds(step)); }

std::string memory_words(const PlanSheet& sheet, const PlanFigures& figures) {
  const Bytes capacity = smallest_memory(*sheet.base->cluster);
  return fmt::format("{} ({:.0f} %)", human_bytes(figures.needed), figures.needed / capacity * 100);
}

std::string rate_words(const PlanFigures& figures, std::int64_t devices) {
  return fmt::format("{:.0f}", rate_of(figures, devices));
}

std::string proof_words(const PlanLine& plan) {
  if (plan.proof.kind == PlanProof::Kind::proven) return {};
  const bool broken = plan.proof.kind == PlanProof::Kind::broken;
  return (broken ? "broken: " : "not proven: ") + plan.proof.reason;
}

std::string answer_words(const PlanSheet& sheet) {
  if (sheet.plans.empty()) return "no plan fits";
  const PlanLine& best = sheet.plans.front();
  const PlanFigures& figures = best.found.figures;
  return fmt::format("{}: {} per step, {} tokens/s per device, MFU {}, memory {}", plan_words(best),
                     step_words(figures.step),
                     rate_words(figures, devices_of(*sheet.base->cluster)),
                     utilisation_text(figures.utilisation), memory_words(sheet, figures));
}

std::string searched_words(const PlanSheet& sheet) {
  const PlanCounts& counts = sheet.counts;
  const std::string searched =
      fmt::format("{}: {} candidate plans, {} evaluated, {} pruned by lower bounds; ",
                  counts.exact ? "search complete" : "search stopped early", grouped(counts.space),
                  grouped(counts.visited), grouped(counts.bounded));
  if (!counts.exact) return searched + "not proven to be the best";
  if (sheet.plans.empty()) return searched + "none fits";
  if (sheet.goal == "memory") return searched + "no plan in the search space needs less memory";
  return searched + "no plan in the search space is " +
         (sheet.goal == "cost" ? "cheaper" : "faster") + " under the time model";
}

std::string space_words(const PlanSheet& sheet) {
  if (sheet.choices == nullptr) return {};
  std::vector<std::string> names;
  for (int r = 0; r < kAxisRoleCount; ++r) {
    const auto role = static_cast<AxisRole>(r);
    if (sheet.choices->roles[at(role)].words.empty()) continue;
    names.emplace_back(sheet.choices->word(role, 0, 0, 0).axis.axis.text());
  }
  std::string all;
  for (std::size_t i = 0; i < names.size(); ++i) {
    all += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
  }
  return "the search space: at most one axis each of " + all + ", with the words of data/search/" +
         sheet.choices->name +
         ".json; what lies outside it (a second axis with a cut, classes placed apart, other "
         "shares "
         "of blocks) was not compared";
}

std::string rejected_words(const PlanSheet& sheet) {
  std::string rejected;
  for (const auto& [rule, count] : sheet.counts.rejected) {
    rejected += (rejected.empty() ? "" : ", ") + rule + " " + grouped(count);
  }
  return rejected.empty() ? rejected : "invalid combinations skipped, by rule: " + rejected;
}

std::string variants_words(const PlanSheet& sheet) {
  if (sheet.plans.size() < 2) return {};
  return "plans that differ only in axis order, layers or chunks per stage, attention exchange, "
         "recomputation, offload, the size of the groups that share states or how long gathered "
         "parameters are kept are collapsed: the best is shown";
}

std::vector<std::string> mixed_words(const PlanSheet& sheet) {
  std::vector<std::string> words;
  if (!sheet.stands.empty()) words.push_back("plan 1: " + sheet.stands);
  const KindAlone* fastest = nullptr;
  std::string alone;
  for (const KindAlone& kind : sheet.alone) {
    const std::string name = grouped(kind.devices) + " " + kind.device;
    alone += (alone.empty() ? "" : ", ") + name + " alone " +
             (kind.plan ? step_words(kind.plan->found.figures.step) : "hold no plan that fits");
    if (!kind.plan) continue;
    const bool faster =
        fastest == nullptr || kind.plan->found.figures.step < fastest->plan->found.figures.step;
    if (faster) fastest = &kind;
  }
  if (alone.empty()) return words;
  if (fastest != nullptr) {
    const Seconds best = sheet.plans.front().found.figures.step;
    const double gain = fastest->plan->found.figures.step / best - 1;
    alone += fmt::format(": mixing {} {:.1f} % more tokens/s than the {} {} alone",
                         gain >= 0 ? "gives" : "gives no gain,", gain * 100,
                         grouped(fastest->devices), fastest->device);
  }
  words.push_back(alone);
  return words;
}

std::string bound_words(const PlanSheet& sheet) {
  const PlanLine& best = sheet.plans.front();
  const std::string cost = best.cost ? "; a step costs " + dollars(*best.cost) : std::string();
  return "plan 1 is bound by " + best.binds + cost;
}

std::string margin_words(const PlanMargin& margin) {
  const std::string what = margin.what == "arithmetic" ? "compute" : margin.what;
  return fmt::format("{:.3g}x {}", margin.factor, what);
}

std::string change_words(Seconds from, Seconds to) {
  const double change = to / from - 1;
  if (std::abs(change) < 5e-5) return "same";
  return fmt::format("{:+.1f} %", change * 100);
}

std::vector<std::string> neighbour_cells(const PlanLine& plan, const NeighbourLine& line) {
  const std::string to = with_short_shares(line.choice);
  if (!line.figures) return {line.axis, "-", line.against, to};
  return {line.axis, change_words(plan.found.figures.step, line.figures->step),
          human_bytes(line.figures->needed), to};
}

double gain_of(const PlanSheet& sheet, const PlanMargin& margin) {
  return rate_of(margin.plan.figures, 1) / rate_of(sheet.plans.front().found.figures, 1) - 1;
}

/// The rules that the placement breaks which breaks fewest.
std::vector<std::string> hindrance_words(const PlanSheet& sheet) {
  const Hindrance& hindrance = sheet.shortage->hindrance;
  std::vector<std::string> out = {"no placement keeps the rules and the constraints"};
  if (hindrance.findings.empty()) return out;
  out.front() += "; nearest to it is " + with_short_shares(sheet.shortage_placement);
  for (const Finding& finding : hindrance.findings) out.push_back(finding_words(finding));
  return out;
}

std::vector<std::string> shortage_words(const PlanSheet& sheet) {
  const PlanShortage& shortage = *sheet.shortage;
  if (!shortage.least) return hindrance_words(sheet);
  std::vector<std::string> out = {
      fmt::format("the placement that needs least takes {} of {} on a device: {}",
                  human_bytes(shortage.needed), human_bytes(shortage.capacity),
                  with_short_shares(sheet.shortage_placement)),
      lack_words(sheet),
      fmt::format("its largest part: {}, {}", shortage.largest,
                  human_bytes(shortage.largest_bytes))};
  if (shortage.lack != PlanShortage::Lack::device) return out;
  out.push_back(shortage.devices > 0
                    ? fmt::format("{} such devices would do", grouped(shortage.devices))
                    : std::string("more such devices alone would not do"));
  return out;
}

std::string price_words(const PlanSheet& sheet, const PlanLine& plan, std::int64_t devices) {
  if (!plan.cost) return "-";
  return dollars(sheet.train_tokens > 0 ? *training_run(sheet, plan, devices).cost : *plan.cost);
}

std::string front_end_words(const PlanSheet& sheet) {
  if (!sheet.front_whole) return "there are smaller ones";
  const std::string less =
      sheet.front_step == 0 ? "less" : fmt::format("{:.3g} % less", 100 * sheet.front_step);
  return "nothing needs " + less + " memory than the last one";
}

std::vector<std::string> scale_cells(const PlanSheet& sheet, const ScaleLine& line) {
  if (!line.plan) return {grouped(line.devices), "-", "-", "-", "-", "-", "-"};
  const PlanFigures& figures = line.plan->found.figures;
  const double part = rate_of(figures, line.devices) / first_rate(sheet);
  return {grouped(line.devices),
          step_words(figures.step),
          rate_words(figures, line.devices),
          fmt::format("{:.0f} %", part * 100),
          human_bytes(figures.needed),
          sheet.train_tokens > 0 ? duration(training_run(sheet, *line.plan, line.devices).days)
                                 : std::string("-"),
          price_words(sheet, *line.plan, line.devices)};
}

std::string scale_words(const ScaleLine& line) {
  if (!line.plan && line.empty) return "no plan keeps the rules and the constraints";
  if (!line.plan) return line.exact ? "nothing fits" : "stopped before a plan was found";
  return (line.exact ? "" : "not proven: ") + plan_words(*line.plan);
}

std::string simulate_words(const PlanSheet& sheet) {
  return "placet simulate " + sheet.command + " " + plan_flags(sheet.plans.front());
}

std::string duration(double days) {
  if (days >= 1) return fmt::format("{:.1f} days", days);
  return days * 24 >= 1 ? fmt::format("{:.1f} hours", days * 24)
                        : fmt::format("{:.1f} minutes", days * 1440);
}

std::string dollars(double amount) {
  if (amount >= 1e6) return fmt::format("${:.2f} million", amount / 1e6);
  const auto cents = static_cast<std::int64_t>(std::llround(amount * 100));
  if (amount >= 0.01 || amount <= 0) {
    return fmt::format("${}.{:02}", grouped(cents / 100), cents % 100);
  }
  const int decimals = 1 - static_cast<int>(std::floor(std::log10(amount)));
  return fmt::format("${:.{}f}", amount, std::min(decimals, kMostDecimals));
}

}  // namespace placet
