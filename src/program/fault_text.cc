// The words of faults.
#include <algorithm>
#include <array>
#include <charconv>
#include <functional>

#include "program/fault.h"
#include "units/error.h"
#include "units/nearest.h"
#include "units/trimmed.h"

namespace placet {
namespace {

constexpr std::array<std::string_view, kFaultOpCount> kOps = {
    "delete",        "duplicate",      "move",         "regroup",     "rescale",
    "reduce_op",     "swap_shards",    "shift_slice",  "drop_zero",   "add_zero",
    "early_free",    "reuse_buffer",   "drop_wait",    "drop_record", "stale",
    "skip_update",   "local_norm",     "local_weight", "wrong_key",   "copy_key",
    "drop_use",      "detach_adjoint", "swap_order",   "substitute",  "redim",
    "drop_position", "compress",       "mask"};

/// Parts between commas that stand in no brackets.
std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : text) {
    depth += c == '(' || c == '[' ? 1 : c == ')' || c == ']' ? -1 : 0;
    if (c == ',' && depth == 0) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  for (std::string& part : parts) part = std::string(trimmed(part));
  return parts;
}

std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  }
  return text;
}

class FaultReader {
 public:
  explicit FaultReader(const std::string& text) { fault_.text = std::string(trimmed(text)); }

  Fault read() {
    const std::size_t open = fault_.text.find('(');
    if (open == std::string::npos || !fault_.text.ends_with(')')) {
      refuse(fault_.text, "is no fault", "OP(KIND, key=value, ...): delete(all_reduce, rank=0)");
    }
    fault_.op = static_cast<FaultOp>(choice(std::string(trimmed(fault_.text.substr(0, open))),
                                            "an operation",
                                            std::vector<std::string>(kOps.begin(), kOps.end())));
    const auto parts =
        split(std::string_view(fault_.text).substr(open + 1, fault_.text.size() - open - 2));
    read_kind(parts[0]);
    for (std::size_t i = 1; i < parts.size(); ++i) read_key(parts[i]);
    require_arguments();
    return std::move(fault_);
  }

 private:
  [[noreturn]] void refuse(const std::string& value, const std::string& problem,
                           const std::string& allowed, const std::string& near = {}) const {
    throw InputError({.where = "--fault \"" + fault_.text + "\"",
                      .value = value,
                      .problem = problem,
                      .allowed = allowed,
                      .nearest = near});
  }

  std::size_t choice(const std::string& word, const std::string& what,
                     const std::vector<std::string>& words) const {
    const auto found = std::ranges::find(words, word);
    if (found == words.end()) {
      refuse(word, "is not " + what, listed(words), nearest(word, words));
    }
    return static_cast<std::size_t>(found - words.begin());
  }

  void read_kind(const std::string& word) {
    std::vector<std::string> names = {"any", "send_recv"};
    for (int k = 0; k < kInstructionKindCount; ++k) {
      names.emplace_back(name_of(static_cast<InstructionKind>(k)));
    }
    const std::size_t number = choice(word, "a kind of instruction", names);
    if (number == 1) fault_.kinds = {InstructionKind::send, InstructionKind::receive};
    if (number > 1) fault_.kinds = {static_cast<InstructionKind>(number - 2)};
  }

  void read_key(const std::string& part) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos) {
      refuse(part, "has no value", "key=value, such as rank=0 or phase=backward");
    }
    const std::string key{trimmed(part.substr(0, equals))};
    const std::string value{trimmed(part.substr(equals + 1))};
    static const std::vector<std::string> kKeys = {"tensor",     "axis",  "phase", "rank", "step",
                                                   "microbatch", "layer", "nth",   "by",   "to",
                                                   "of",         "with",  "stream"};
    const std::size_t number = choice(key, "a key of a fault", kKeys);
    if (value.empty()) refuse(part, "has no value", key + "=VALUE");
    if (std::ranges::find(seen_, key) != seen_.end()) refuse(key, "is said twice", "each key once");
    seen_.push_back(key);
    set(number, key, value);
  }

  void set(std::size_t number, const std::string& key, const std::string& value) {
    static const std::vector<std::string> kPhases = {"forward", "backward", "reduce", "update"};
    if (key == "stream") {
      fault_.stream = static_cast<Stream>(choice(value, "a stream", stream_names()));
      return;
    }
    switch (number) {
      case 0:
        fault_.tensor = value;
        return;
      case 1:
        fault_.axis = value;
        return;
      case 2:
        fault_.phase = static_cast<StepPhase>(choice(value, "a phase", kPhases));
        return;
      case 3:
        return read_rank(value);
      case 4:
        fault_.step = whole(key, value, 1, 2);
        return;
      case 5:
        fault_.micro_batch = whole(key, value, 0, kMost);
        return;
      case 6:
        fault_.layer = whole(key, value, 0, kMost);
        return;
      case 7:
        fault_.nth = whole(key, value, 1, kMost);
        return;
      default:
        return set_argument(key, value);
    }
  }

  static std::vector<std::string> stream_names() {
    std::vector<std::string> names;
    names.reserve(kStreamCount);
    for (int s = 0; s < kStreamCount; ++s) names.emplace_back(name_of(static_cast<Stream>(s)));
    return names;
  }

  /// Whether the operation takes that argument.
  bool takes(const std::string& key) const {
    const auto is = [&](FaultOp op) { return fault_.op == op; };
    if (is(FaultOp::move) || is(FaultOp::rescale) || is(FaultOp::shift_slice)) return key == "by";
    if (is(FaultOp::compress) || is(FaultOp::mask)) return key == "by";
    if (is(FaultOp::regroup) || is(FaultOp::reduce_op)) return key == "to";
    if (is(FaultOp::substitute) || is(FaultOp::redim)) return key == "to";
    if (is(FaultOp::reuse_buffer)) return key == "of";
    return is(FaultOp::swap_order) && key == "with";
  }

  void set_argument(const std::string& key, const std::string& value) {
    if (!takes(key)) {
      refuse(key, "is not said of " + std::string(name_of(fault_.op)),
             "by of move, rescale, shift_slice, compress and mask; to of regroup, reduce_op, "
             "substitute and redim; "
             "of of reuse_buffer; with of swap_order");
    }
    if (fault_.op == FaultOp::move || fault_.op == FaultOp::shift_slice) {
      fault_.by = std::to_string(whole(key, value, -kMost, kMost));
    } else if (key == "by") {
      fault_.by = fault_.op == FaultOp::rescale ? value : name(value);
    } else if (fault_.op == FaultOp::reduce_op) {
      choice(value, "a way to combine", {"mean", "max", "min"});
      fault_.to = value;
    } else if (key == "to") {
      set_target(key, value);
    } else if (key == "of") {
      fault_.of = value;
    } else {
      fault_.with = whole(key, value, 1, kMost);
    }
  }

  /// A name that can stand in a function's.
  std::string name(const std::string& value) const {
    const bool plain = std::ranges::all_of(
        value, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
    if (!plain) refuse(value, "is no name", "lower-case letters, digits and '-', such as int8");
    return value;
  }

  void set_target(const std::string& key, const std::string& value) {
    if (fault_.op == FaultOp::substitute) {
      std::vector<std::string> kinds;
      kinds.reserve(kInstructionKindCount);
      for (int k = 0; k < kInstructionKindCount; ++k) {
        kinds.emplace_back(name_of(static_cast<InstructionKind>(k)));
      }
      choice(value, "a kind of instruction", kinds);
    }
    fault_.to = fault_.op == FaultOp::redim ? std::to_string(whole(key, value, 0, kMost)) : value;
  }

  void require_arguments() const {
    for (const std::string key : {"by", "to", "of", "with"}) {
      if (!takes(key) || std::ranges::find(seen_, key) != seen_.end()) continue;
      refuse(std::string(name_of(fault_.op)), "says not all it needs", key + "=VALUE");
    }
    if (fault_.op == FaultOp::move && fault_.by == "0") refuse("0", "moves nothing", "by=+N or -N");
  }

  std::int64_t whole(const std::string& key, const std::string& text, std::int64_t least,
                     std::int64_t most) const {
    std::int64_t value = 0;
    const char* begin = text.data() + (text.starts_with('+') ? 1 : 0);
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(begin, end, value);
    if (error != std::errc() || rest != end || value < least || value > most) {
      const bool bounded = most < kMost;
      refuse(text, "is no value of " + key,
             "a whole number from " + std::to_string(least) +
                 (bounded ? " to " + std::to_string(most) : " on"));
    }
    return value;
  }

  void read_rank(const std::string& value) {
    if (value.find('=') == std::string::npos) {
      if (value.find_first_not_of("0123456789.- ") != std::string::npos) {
        refuse(value, "is no value of rank", "a number, a range 0-3, or coordinates dp=1/tp=0");
      }
      const std::size_t dots = value.find("..");
      const std::size_t dash = value.find('-', 1);  // as placements write ranges
      const bool dotted = dots != std::string::npos;
      const std::size_t middle = dotted ? dots : dash;
      const std::string first{trimmed(value.substr(0, middle))};
      const std::string last = middle == std::string::npos
                                   ? first
                                   : std::string(trimmed(value.substr(middle + (dotted ? 2 : 1))));
      fault_.rank.ranks = NumberRange{.first = whole("rank", first, 0, kMost),
                                      .last = whole("rank", last, 0, kMost)};
      return;
    }
    std::size_t begin = 0;
    while (begin <= value.size()) {
      const std::size_t end = std::min(value.find('/', begin), value.size());
      const std::string one = value.substr(begin, end - begin);
      const std::size_t equals = one.find('=');
      if (equals == std::string::npos) refuse(one, "is no coordinate", "AXIS=NUMBER/AXIS=NUMBER");
      fault_.rank.coordinates[std::string(trimmed(one.substr(0, equals)))] =
          whole("rank", std::string(trimmed(one.substr(equals + 1))), 0, kMost);
      begin = end + 1;
    }
  }

  static constexpr std::int64_t kMost = std::int64_t{1} << 40;

  Fault fault_;
  std::vector<std::string> seen_;
};

}  // namespace

std::string_view name_of(FaultOp op) { return kOps.at(static_cast<std::size_t>(op)); }

Fault fault_from(const std::string& text) { return FaultReader(text).read(); }

}  // namespace placet
