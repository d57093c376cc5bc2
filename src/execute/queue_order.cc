#include "execute/queue_order.h"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "ranks/numbers.h"
#include "units/error.h"
#include "units/nearest.h"

namespace placet {
namespace {

const std::string kSeeded = "seeded";

}  // namespace

QueueOrder queue_order_from(const std::string& text) {
  if (text == "listed") return {.kind = QueueOrder::Kind::listed};
  if (text == "early") return {.kind = QueueOrder::Kind::early};
  if (text == "late") return {.kind = QueueOrder::Kind::late};
  if (text == kSeeded) return {.kind = QueueOrder::Kind::seeded};
  if (text.starts_with(kSeeded + "=")) {
    QueueOrder order{.kind = QueueOrder::Kind::seeded};
    const char* begin = text.data() + kSeeded.size() + 1;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(begin, end, order.seed);
    if (error == std::errc{} && stop == end) return order;
    refuse("--order", text, "has no seed", "seeded=N, N a whole number");
  }
  const std::vector<std::string> words = {"early", "late", kSeeded, "listed"};
  throw InputError({.where = "--order",
                    .value = text,
                    .problem = "is no order of queues",
                    .allowed = "early, late, seeded, seeded=N or listed",
                    .nearest = nearest(text, words)});
}

std::string text_of(const QueueOrder& order) {
  switch (order.kind) {
    case QueueOrder::Kind::listed:
      return "listed";
    case QueueOrder::Kind::early:
      return "early";
    case QueueOrder::Kind::late:
      return "late";
    case QueueOrder::Kind::seeded:
      return kSeeded + "=" + std::to_string(order.seed);
  }
  return "";
}

namespace execute {

const QueueChoice::Queues& QueueChoice::next() {
  if (order_.kind == QueueOrder::Kind::late && !std::exchange(turned_, true)) {
    std::ranges::reverse(queues_);
  }
  if (order_.kind != QueueOrder::Kind::seeded) return queues_;
  for (std::size_t last = queues_.size() - 1; last > 0; --last) {
    const std::uint64_t draw = ranks::mixed(order_.seed ^ ranks::mixed(++drawn_));
    std::swap(queues_[last], queues_[draw % (last + 1)]);
  }
  return queues_;
}

}  // namespace execute
}  // namespace placet
