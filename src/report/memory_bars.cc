#include "report/memory_bars.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "report/human.h"

namespace placet {
namespace {

constexpr std::size_t kLabel = 13;   // "activations" and two blanks
constexpr std::size_t kNumber = 10;  // "1023 GB"
constexpr std::size_t kMostClasses = 24;

std::size_t index(int category) { return static_cast<std::size_t>(category); }

// How much of a bar an amount of a class fills. A full bar is its capacity, or as many times that
// as some class needs.
double part_of_bar(const Derivation& derivation, const MemoryClass& own, Bytes amount) {
  if (own.capacity == Bytes()) return amount / std::max({derivation.peak, bytes(1)});
  double most = 1;
  for (const MemoryClass& memory : derivation.memory) {
    if (memory.capacity > Bytes()) most = std::max(most, needed(memory) / memory.capacity);
  }
  return amount / own.capacity / most;
}

bool differ_in_capacity(const std::vector<MemoryClass>& classes) {
  return std::ranges::any_of(
      classes, [&](const MemoryClass& memory) { return memory.capacity != classes[0].capacity; });
}

std::size_t bar_columns(const TextStyle& style, std::size_t beside) {
  const auto width = static_cast<std::size_t>(std::max(style.width, 40));
  constexpr std::size_t kLeast = 8;
  constexpr std::size_t kMost = 96;
  return width > beside + kLeast ? std::min(width - beside, kMost) : kLeast;
}

// One line per category, its bar on the scale of the whole device.
std::string categories(const Judged& judged, const MemoryClass& memory, const TextStyle& style) {
  const std::size_t columns = bar_columns(style, 2 + kLabel + kNumber + 2 + 8);
  std::string text;
  for (int i = 0; i < kMemoryCategoryCount; ++i) {
    const auto category = static_cast<MemoryCategory>(i);
    const Bytes amount = memory.at_peak[index(i)];
    if (amount == Bytes() && category == MemoryCategory::overhead) continue;
    text += "  " + padded(name_of(category), kLabel);
    text += bar(style, ink_of(category), part_of_bar(judged.derivation, memory, amount), columns);
    text += padded_left(human_bytes(amount), kNumber) + "  ";
    text += padded_left(
        memory.peak == Bytes() ? "-" : fmt::format("{:.1f} %", 100 * (amount / memory.peak)), 7);
    text += "\n";
  }
  text += "  " + padded("at the peak", kLabel) + std::string(columns, ' ') +
          inked(style, Ink::bold, padded_left(human_bytes(memory.peak), kNumber)) + "\n";
  return text;
}

std::string stacked(const Judged& judged, const MemoryClass& memory, const TextStyle& style,
                    std::size_t columns) {
  std::vector<BarPart> parts;
  for (int i = 0; i < kMemoryCategoryCount; ++i) {
    const auto category = static_cast<MemoryCategory>(i);
    parts.push_back({.ink = ink_of(category),
                     .letter = letter_of(category),
                     .part = part_of_bar(judged.derivation, memory, memory.at_peak[index(i)])});
  }
  return stacked_bar(style, parts, columns);
}

// Every class on one line; long pipelines show the first and last and the fullest.
std::string all_classes(const Judged& judged, const TextStyle& style) {
  const auto& classes = judged.derivation.memory;
  std::size_t label = 0;
  for (const MemoryClass& memory : classes) {
    label = std::max(label, columns_of(class_name(*judged.job, memory)));
  }
  label += 2;
  constexpr std::size_t kCapacity = 11;  // " of 84.9 GB"
  const bool differ = differ_in_capacity(classes);
  const std::size_t columns =
      bar_columns(style, 2 + label + kNumber + (differ ? kCapacity : std::size_t{0}));
  std::string text;
  std::size_t left_out = 0;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const bool at_end = i < kMostClasses / 2 || i + kMostClasses / 2 >= classes.size();
    if (!at_end && &classes[i] != &fullest(judged.derivation)) {
      ++left_out;
      continue;
    }
    text += "  " + padded(class_name(*judged.job, classes[i]), label) +
            stacked(judged, classes[i], style, columns) +
            padded_left(human_bytes(classes[i].peak), kNumber) +
            (differ ? " of " + human_bytes(classes[i].capacity) : "") + "\n";
  }
  if (left_out > 0) text += fmt::format("  ({} classes between them are lower)\n", left_out);
  if (!style.unicode || !style.colour) {
    text += memory_legend(style);
  }
  return text;
}

std::string capacity_lines(const Judged& judged, const MemoryClass& memory,
                           const TextStyle& style) {
  const Derivation& derivation = judged.derivation;
  std::string text;
  if (memory.replayed) {
    const std::string line =
        fmt::format("{} ({}) by the caching allocator, with the blocks that it keeps",
                    human_bytes(memory.reserved), human_gibibytes(memory.reserved));
    text += "  " + padded("reserved", kLabel) + wrapped(style, line, 2 + kLabel) + "\n";
  }
  if (memory.outside > Bytes()) {
    text += "  " + padded("outside", kLabel) + human_bytes(memory.outside) +
            " of context, communicators and libraries\n";
  }
  const Bytes capacity = memory.capacity > Bytes() ? memory.capacity : derivation.capacity;
  if (capacity > Bytes()) {
    text += "  " + padded("capacity", kLabel) +
            fmt::format("{} ({}), {:.1f} % used\n", human_bytes(capacity),
                        human_gibibytes(capacity), 100 * (needed(memory) / capacity));
  }
  if (derivation.host_used > Bytes()) {
    text += "  " + padded("host", kLabel) + human_bytes(derivation.host_used) + " of its memory";
    if (derivation.host_capacity > Bytes()) {
      text += fmt::format(", which is {}", human_bytes(derivation.host_capacity));
    }
    text += "\n";
  }
  if (derivation.nvme_used > Bytes()) {
    text += "  " + padded("nvme", kLabel) + human_bytes(derivation.nvme_used) + " of a host's\n";
  }
  return text;
}

}  // namespace

Ink ink_of(MemoryCategory category) {
  constexpr std::array inks = {Ink::parameters,  Ink::optimizer, Ink::gradients,
                               Ink::activations, Ink::transient, Ink::overhead};
  return inks[static_cast<std::size_t>(category)];
}

char letter_of(MemoryCategory category) {
  constexpr std::string_view letters = "POGAtv";
  return letters[static_cast<std::size_t>(category)];
}

std::string memory_text(const Judged& judged, const TextStyle& style) {
  if (judged.derivation.memory.empty()) return "";
  const MemoryClass& memory = fullest(judged.derivation);
  std::string rest =
      "peak " + human_bytes(memory.peak) + " per device, at " + peak_text(*judged.job, memory);
  const bool several = judged.derivation.memory.size() > 1;
  if (several) {
    rest += fmt::format(" ({}, {} device{})", class_name(*judged.job, memory), memory.devices,
                        memory.devices == 1 ? "" : "s");
  }
  std::string text = inked(style, Ink::bold, "Memory") + "  " + wrapped(style, rest, 8) + "\n";
  text += categories(judged, memory, style);
  text += capacity_lines(judged, memory, style);
  if (several) text += "\n" + all_classes(judged, style);
  return text + "\n";
}

std::string memory_legend(const TextStyle& style) {
  constexpr std::string_view kLetters =
      "P parameters, O optimizer, G gradients, A activations, t transient, v overhead";
  return "  " + wrapped(style, kLetters, 2) + "\n";
}

}  // namespace placet
