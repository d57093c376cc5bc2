#include "report/trace.h"

#include <cmath>
#include <cstdint>
#include <set>
#include <utility>

#include "report/human.h"
#include "report/json_parts.h"

namespace placet {
namespace {

constexpr double kMicro = 1e6;
constexpr double kNano = 1e9;

/// "forward of block 12", "gradients over dp".
std::string name_of_slice(const Job& job, const Slice& slice) {
  std::string text = slice.what.empty() ? spaced(name_of(slice.doing)) : std::string(slice.what);
  if (slice.unit >= 0) {
    const auto unit = static_cast<std::size_t>(slice.unit);
    const Unit& own = job.model.units[unit];
    const UnitKind& kind = job.model.kinds[static_cast<std::size_t>(own.kind)];
    text += " of " + kind.name;
    if (kind.role == UnitRole::block) text += " " + std::to_string(own.number);
  }
  std::string axes;
  for (const std::string& axis : axis_names(job, slice.axes)) axes += " " + axis;
  return axes.empty() ? text : text + " over" + axes;
}

Json args_of(const Slice& slice) {
  Json args = Json::object();
  if (slice.micro_batch >= 0) args["micro_batch"] = slice.micro_batch;
  if (slice.chunk >= 0) args["chunk"] = slice.chunk;
  if (slice.unit >= 0) args["unit"] = slice.unit;
  if (slice.bytes > 0) args["bytes"] = static_cast<std::int64_t>(slice.bytes);
  return args;
}

Json name_event(std::string_view what, int process, int thread, const std::string& name) {
  return {
      {"ph", "M"}, {"name", what}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}};
}

Json event_of(const Job& job, const Slice& slice) {
  const double begin = in_seconds(slice.begin) * kMicro;
  return {{"ph", "X"},
          {"name", name_of_slice(job, slice)},
          {"cat", name_of(slice.doing)},
          {"pid", slice.stage},
          {"tid", static_cast<int>(slice.lane)},
          {"ts", begin},
          {"dur", in_seconds(slice.end) * kMicro - begin},
          {"args", args_of(slice)}};
}

/// Names of processes and threads.
template <class Add>
void add_names(const Job& job, const Simulation& simulated, Add add) {
  std::set<std::pair<int, Lane>> lanes;
  for (const Slice& slice : simulated.slices) lanes.emplace(slice.stage, slice.lane);
  int process = -1;
  for (const auto& [stage, lane] : lanes) {
    if (stage != process) add(name_event("process_name", stage, 0, class_name(job, stage)));
    process = stage;
    add(name_event("thread_name", stage, static_cast<int>(lane), std::string(name_of(lane))));
  }
}

std::int64_t nanoseconds(Seconds time) { return std::llround(in_seconds(time) * kNano); }

template <class Of>
Json column(const Simulation& simulated, Of of) {
  Json::array_t values;
  values.reserve(simulated.slices.size());
  for (const Slice& slice : simulated.slices) values.emplace_back(of(slice));
  return values;
}

template <class Kind>
Json names_of(int count) {
  Json names = Json::array();
  for (int i = 0; i < count; ++i) names.push_back(name_of(static_cast<Kind>(i)));
  return names;
}

std::string compact(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string trace_json(const Judged& judged, const Simulation& simulated) {
  const Json other = {{"model", judged.job->model.name},
                      {"placement", judged.job->placement_text},
                      {"step_seconds", in_seconds(simulated.step)},
                      {"units_apart", simulated.by_unit},
                      {"slices_left_out", simulated.left_out}};
  // Event by event, since a document of all of them would be many times as large as its text.
  std::string text =
      "{\"displayTimeUnit\":\"ms\",\"otherData\":" + compact(other) + ",\"traceEvents\":[";
  std::string separator = "\n";
  const auto add = [&](const Json& event) {
    text += separator + compact(event);
    separator = ",\n";
  };
  add_names(*judged.job, simulated, add);
  for (const Slice& slice : simulated.slices) add(event_of(*judged.job, slice));
  return text + "\n]}\n";
}

std::string slices_json(const Judged& judged, const Simulation& simulated) {
  const Json columns = {
      {"stage", column(simulated, [](const Slice& slice) { return slice.stage; })},
      {"lane", column(simulated, [](const Slice& slice) { return static_cast<int>(slice.lane); })},
      {"doing",
       column(simulated, [](const Slice& slice) { return static_cast<int>(slice.doing); })},
      {"chunk", column(simulated, [](const Slice& slice) { return slice.chunk; })},
      {"unit", column(simulated, [](const Slice& slice) { return slice.unit; })},
      {"micro_batch", column(simulated, [](const Slice& slice) { return slice.micro_batch; })},
      {"begin", column(simulated, [](const Slice& slice) { return nanoseconds(slice.begin); })},
      {"end", column(simulated, [](const Slice& slice) { return nanoseconds(slice.end); })}};
  return compact({{"schema", "placet.slices/1"},
                  {"placement", judged.job->placement_text},
                  {"stages", simulated.stages.size()},
                  {"step_nanoseconds", nanoseconds(simulated.step)},
                  {"units_apart", simulated.by_unit},
                  {"slices_left_out", simulated.left_out},
                  {"lanes", names_of<Lane>(kLaneCount)},
                  {"doings", names_of<Doing>(kDoingCount)},
                  {"slices", columns}}) +
         "\n";
}

}  // namespace placet
