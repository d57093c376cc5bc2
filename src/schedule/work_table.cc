#include "schedule/work_table.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "units/at.h"
#include "units/error.h"
#include "units/number.h"

namespace placet {
namespace {

constexpr std::int64_t kMostStages = 65536;
constexpr std::int64_t kMostMicroBatches = 1 << 20;
constexpr std::array<std::string_view, 7> kPassedOver = {
    "SEND_F", "RECV_F", "SEND_B", "RECV_B", "UNSHARD", "RESHARD", "REDUCE_GRAD"};

struct Action {
  std::int64_t stage = 0;
  Work::Kind kind = Work::Kind::forward;
  std::int64_t micro_batch = 0;
  std::size_t slot = 0;  // of its row, from 0
};

std::string_view digits_at(std::string_view text) {
  return text.substr(0, text.find_first_not_of("0123456789"));
}

std::optional<Work::Kind> kind_of(std::string_view letter) {
  if (letter == "F") return Work::Kind::forward;
  if (letter == "B") return Work::Kind::backward;
  if (letter == "I") return Work::Kind::backward_input;
  if (letter == "W") return Work::Kind::backward_weight;
  return std::nullopt;
}

std::string text_of(std::int64_t stage, char letter, std::int64_t micro_batch) {
  return std::to_string(stage) + letter + std::to_string(micro_batch);
}

class TableReader {
 public:
  TableReader(const TableRows& rows, std::string where) : rows_(rows), where_(std::move(where)) {}

  Schedule read(const std::string& name) {
    for (std::size_t d = 0; d < rows_.size(); ++d) read_row(d);
    require_stages();
    for (std::size_t d = 0; d < stages_.size(); ++d) {
      last_stage_ = std::max(last_stage_, *stages_[d].rbegin());
      for (const std::int64_t stage : stages_[d]) host_of_[stage] = d;
    }
    Schedule out{.name = name, .hosting = Hosting::table, .order = Order::table};
    out.chunks = static_cast<std::int64_t>(stages_.front().size());
    out.table = {.micro_batches = micro_batches_, .stages = {}, .work = {}};
    for (std::size_t d = 0; d < rows_.size(); ++d) {
      require_whole(d);
      out.table.stages.emplace_back(stages_[d].begin(), stages_[d].end());
      out.table.work.push_back(work_of_row(d));
    }
    if (splits_) out.order = Order::split_table;
    require_progress();
    return out;
  }

 private:
  [[noreturn]] void fail(std::size_t device, std::size_t slot, const std::string& problem,
                         const std::string& allowed) const {
    refuse(where_ + ", row " + std::to_string(device + 1) + ", slot " + std::to_string(slot + 1),
           slot < rows_[device].size() ? rows_[device][slot] : "", problem, allowed);
  }

  void read_row(std::size_t device) {
    actions_.emplace_back();
    stages_.emplace_back();
    for (std::size_t slot = 0; slot < rows_[device].size(); ++slot) {
      const auto action = action_of(device, slot);
      if (!action) continue;
      actions_.back().push_back(*action);
      stages_.back().insert(action->stage);
      micro_batches_ = std::max(micro_batches_, action->micro_batch + 1);
      splits_ = splits_ || action->kind == Work::Kind::backward_input;
    }
    if (actions_.back().empty()) fail(device, 0, "the row has no work", "one action or more");
  }

  /// None: an idle slot, or a message.
  std::optional<Action> action_of(std::size_t device, std::size_t slot) const {
    const std::string_view text = rows_[device][slot];
    if (text.empty()) return std::nullopt;
    const std::string_view stage = digits_at(text);
    std::string_view rest = text.substr(stage.size());
    const std::size_t letters = std::min(rest.find_first_of("0123456789"), rest.size());
    const std::string_view word = rest.substr(0, letters);
    const std::string_view micro_batch = rest.substr(letters);
    const bool message = std::ranges::find(kPassedOver, word) != kPassedOver.end();
    const auto number = number_in<std::int64_t>(stage);
    if (message && number) return std::nullopt;
    const auto kind = kind_of(word);
    const auto of = number_in<std::int64_t>(micro_batch);
    if (!kind || !number || !of || *number >= kMostStages || *of >= kMostMicroBatches) {
      fail(device, slot, "is no action",
           "stage, F, B, I or W, and micro-batch, such as 0F0; of less than " +
               std::to_string(kMostStages) + " stages and " + std::to_string(kMostMicroBatches) +
               " micro-batches");
    }
    return Action{*number, *kind, *of, slot};
  }

  /// Every stage on one device, and as many on each.
  void require_stages() const {
    std::set<std::int64_t> all;
    for (std::size_t d = 0; d < stages_.size(); ++d) {
      for (const std::int64_t stage : stages_[d]) {
        if (all.insert(stage).second) continue;
        fail(d, slot_of(d, stage), "works on a stage of another row too", "each stage in one row");
      }
      if (stages_[d].size() == stages_.front().size()) continue;
      fail(d, 0,
           "begins a row of " + std::to_string(stages_[d].size()) + " stages, the first has " +
               std::to_string(stages_.front().size()),
           "as many in each row");
    }
    const auto count = static_cast<std::int64_t>(all.size());
    if (*all.rbegin() + 1 == count) return;
    std::int64_t missing = 0;
    while (all.contains(missing)) ++missing;
    refuse(where_, std::to_string(missing), "is a stage of no row",
           "stages 0 to " + std::to_string(*all.rbegin()));
  }

  std::size_t slot_of(std::size_t device, std::int64_t stage) const {
    return std::ranges::find(actions_[device], stage, &Action::stage)->slot;
  }

  /// What a stage of the row has done of a micro-batch.
  enum class Done : std::uint8_t { nothing, forward, input, all };
  using DoneWork = std::map<std::pair<std::int64_t, std::int64_t>, Done>;

  static Done needed_by(Work::Kind kind) {
    if (kind == Work::Kind::forward) return Done::nothing;
    return kind == Work::Kind::backward_weight ? Done::input : Done::forward;
  }

  static Done left_by(Work::Kind kind) {
    if (kind == Work::Kind::forward) return Done::forward;
    return kind == Work::Kind::backward_input ? Done::input : Done::all;
  }

  /// Each stage of the row takes each micro-batch once forward and then once backward.
  void require_whole(std::size_t device) const {
    DoneWork done;
    for (const Action& action : actions_[device]) {
      Done& now = done[{action.stage, action.micro_batch}];
      if (now != needed_by(action.kind)) {
        fail(device, action.slot, "stands out of turn",
             "of each stage and micro-batch once F, then B, or I and W");
      }
      now = left_by(action.kind);
    }
    for (const std::int64_t stage : stages_[device]) require_all_of(device, stage, done);
  }

  void require_all_of(std::size_t device, std::int64_t stage, const DoneWork& done) const {
    for (std::int64_t m = 0; m < micro_batches_; ++m) {
      const auto found = done.find({stage, m});
      const Done now = found == done.end() ? Done::nothing : found->second;
      if (now == Done::all) continue;
      const char begun = now == Done::forward ? 'B' : 'W';
      fail(device, rows_[device].size(),
           text_of(stage, now == Done::nothing ? 'F' : begun, m) + " is missing",
           "every micro-batch from 0 to " + std::to_string(micro_batches_ - 1));
    }
  }

  std::vector<Work> work_of_row(std::size_t device) const {
    const std::vector<std::int64_t> own(stages_[device].begin(), stages_[device].end());
    std::vector<Work> work;
    for (const Action& action : actions_[device]) {
      const std::int64_t chunk = std::ranges::lower_bound(own, action.stage) - own.begin();
      work.push_back({action.kind, chunk, action.micro_batch});
    }
    return work;
  }

  /// How far the devices have come, each with its row alone and with what others have made.
  struct Progress {
    std::vector<std::size_t> next;                            // by device, into its actions
    std::set<std::pair<std::int64_t, std::int64_t>> forward;  // stage and micro-batch
    std::set<std::pair<std::int64_t, std::int64_t>> backward;
  };

  /// The stage whose result the action takes; none: it has all that it needs.
  std::optional<std::int64_t> stage_before(const Action& action) const {
    if (action.kind == Work::Kind::backward_weight) return std::nullopt;
    const bool is_forward = action.kind == Work::Kind::forward;
    const std::int64_t before = is_forward ? action.stage - 1 : action.stage + 1;
    if (before < 0 || before > last_stage_) return std::nullopt;
    return before;
  }

  /// The device that waits for what the action makes; none: nobody does.
  std::optional<std::size_t> device_behind(const Action& action) const {
    if (action.kind == Work::Kind::backward_weight) return std::nullopt;
    const bool is_forward = action.kind == Work::Kind::forward;
    const auto found = host_of_.find(is_forward ? action.stage + 1 : action.stage - 1);
    return found == host_of_.end() ? std::nullopt : std::optional(found->second);
  }

  bool can_run(const Action& action, const Progress& progress) const {
    const auto before = stage_before(action);
    const bool is_forward = action.kind == Work::Kind::forward;
    const auto& made = is_forward ? progress.forward : progress.backward;
    return !before || made.contains({*before, action.micro_batch});
  }

  /// Runs a device as far as it can; devices that may go on by that are added to `awake`.
  void run(std::size_t device, Progress& progress, std::vector<std::size_t>& awake) const {
    for (std::size_t& next = progress.next[device]; next < actions_[device].size(); ++next) {
      const Action& action = actions_[device][next];
      if (!can_run(action, progress)) return;
      const auto behind = device_behind(action);
      if (action.kind == Work::Kind::forward) {
        progress.forward.insert({action.stage, action.micro_batch});
      } else if (action.kind != Work::Kind::backward_weight) {
        progress.backward.insert({action.stage, action.micro_batch});
      }
      if (behind) awake.push_back(*behind);
    }
  }

  /// Lets every device work as far as it can, until none can: all must have come to their ends.
  /// Each action is run once, and wakes one device at most.
  void require_progress() const {
    Progress progress{.next = std::vector<std::size_t>(actions_.size(), 0)};
    std::vector<std::size_t> awake;
    for (std::size_t d = actions_.size(); d-- > 0;) awake.push_back(d);
    while (!awake.empty()) {
      const std::size_t device = awake.back();
      awake.pop_back();
      run(device, progress, awake);
    }
    for (std::size_t d = 0; d < actions_.size(); ++d) {
      if (progress.next[d] < actions_[d].size()) fail_stuck(d, actions_[d][progress.next[d]]);
    }
  }

  [[noreturn]] void fail_stuck(std::size_t device, const Action& stuck) const {
    const bool is_forward = stuck.kind == Work::Kind::forward;
    fail(device, stuck.slot,
         "waits for ever for " + text_of(is_forward ? stuck.stage - 1 : stuck.stage + 1,
                                         is_forward ? 'F' : 'B', stuck.micro_batch),
         "an order in which what a device waits for is not behind what waits for it");
  }

  const TableRows& rows_;
  std::string where_;
  std::vector<std::vector<Action>> actions_;    // by device
  std::vector<std::set<std::int64_t>> stages_;  // by device
  std::int64_t micro_batches_ = 0;
  std::int64_t last_stage_ = 0;
  std::map<std::int64_t, std::size_t> host_of_;  // by stage
  bool splits_ = false;
};

}  // namespace

Schedule schedule_of_table(const TableRows& rows, const std::string& name,
                           const std::string& where) {
  if (rows.empty()) refuse(where, "", "the table has no row", "one row for each device");
  return TableReader(rows, where).read(name);
}

}  // namespace placet
