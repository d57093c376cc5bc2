// The result of holding predictions against a table of measured runs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "validate/statistics.h"

namespace placet {

/// Where the inputs of a row's prediction come from: from the row alone; from the row and, for gaps
/// that its source leaves, from rules with sources of their own; or some are not known at all and
/// customs stand in, which are reported beside the totals and not in them.
enum class RowGroup : std::uint8_t { stated, assumed, unknown };
std::string_view name_of(RowGroup group);

/// What rows are told apart by in the summaries.
struct RowLabels {
  std::string row_id;
  std::string source;
  std::string model;
  std::string engine;     // "name@version"
  std::string placement;  // in the placement grammar
  std::int64_t tensor_degree = 0;
  std::int64_t layer_degree = 0;
  RowGroup group = RowGroup::stated;
};

/// One figure that a source gives, beside ours.
struct Prediction {
  RowLabels labels;
  std::string measure;       // "reserved", "states", "activations", ...
  bool decides = true;       // the figure that stands for its row in the totals
  bool is_share = false;     // values are fractions of another row's; otherwise bytes
  bool is_time = false;      // values are seconds
  std::int64_t devices = 0;  // of the job, for times
  double throughput = 1;     // tokens of the step
  double measured = 0;
  double predicted = 0;  // 0 where a row could not be predicted: an error of 100 %
  double error = 0;      // predicted / measured - 1
  bool failed = false;
  bool near_limit = false;  // measured near the device's capacity, where allocators free and retry
};

/// A row without prediction. Those that could be scored count as 100 % error.
struct SkippedRow {
  std::string row_id;
  std::string reason;
  bool scorable = false;
};

/// A run that finished or ran out of memory, beside what the device holds.
struct FitJudgement {
  RowLabels labels;
  bool ran_out = false;
  FitGrade grade = FitGrade::fits;
  double needed = 0;    // bytes on the fullest device
  double capacity = 0;  // bytes
};

/// Origins of facts that fill gaps of a table: from another source, or read off its own figures.
constexpr std::string_view kAssumed = "assumption";
constexpr std::string_view kAssumedFromTable = "assumption from the table";
/// The same where nothing is known of the source.
constexpr std::string_view kCustom = "custom";

/// A stated fact and the rows it touches.
struct UsedFact {
  std::string origin;  // "name@version", "engine", "word", "measure", "device", or an assumption
  std::string key;
  std::string value;
  std::string source;
  std::int64_t rows = 0;
};

using SummaryTable = std::map<std::string, ErrorSummary>;

/// What errors are without anything that was read off the table's own figures.
struct WithoutTable {
  ErrorSummary memory;
  ErrorSummary time;
  std::optional<double> rank_correlation;
  Confusion out_of_memory;
};

/// Something to be told about rows, and how many it concerns: a cell that was not understood.
using NoteCounts = std::map<std::string, std::int64_t>;

/// A row as a user would type it.
struct RowCommand {
  std::string row_id;
  std::string line;
};

struct Validation {
  std::string table;
  std::int64_t rows = 0;
  std::int64_t scorable = 0;   // rows with a figure and with every input known
  std::int64_t predicted = 0;  // of those
  std::int64_t time_rows = 0;  // rows with a step time or throughput
  std::vector<SkippedRow> skipped;
  std::vector<Prediction> predictions;  // in the order of the rows
  std::vector<FitJudgement> fits;
  ErrorSummary memory;  // of the deciding figures
  ErrorSummary time;    // of steps
  /// Of predicted and measured throughput within one source, model and number of devices: the
  /// median over such groups of three rows or more; none without a group.
  std::optional<double> rank_correlation;
  std::int64_t ranked_groups = 0;
  SummaryTable time_by_source, time_by_model, time_by_engine;
  std::map<RowGroup, ErrorSummary> time_groups;
  std::map<RowGroup, ErrorSummary> groups;
  ErrorSummary below_limit, near_limit;  // of `memory`, by Prediction::near_limit
  SummaryTable by_measure, by_source, by_model, by_engine, by_tensor_degree, by_layer_degree;
  Confusion out_of_memory;
  std::vector<UsedFact> facts;
  std::optional<WithoutTable> without_table;  // where anything was read off the table
  NoteCounts notes;
  std::vector<RowCommand> commands;                  // if they were asked for
  std::map<std::string, std::string> command_files;  // that these name: text by name
};

/// Fills the summaries from predictions and fits.
Validation summarized(Validation validation);

/// The `count` deciding predictions of memory, or predictions of time, with the largest errors, the
/// worst first.
std::vector<Prediction> worst_of(const Validation& validation, std::size_t count);
std::vector<Prediction> worst_times(const Validation& validation, std::size_t count);

}  // namespace placet
