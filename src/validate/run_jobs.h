// From what a row says to the job that is derived: the only place that knows how a framework's
// degrees become a placement.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "catalog/catalog.h"
#include "catalog/cluster_catalog.h"
#include "catalog/strategy_catalog.h"
#include "catalog/validation_catalog.h"
#include "derive/prepared.h"
#include "profile/job.h"
#include "validate/run_facts.h"

namespace placet {

/// The words of a row that its frame is made of, as flags spell them.
struct FrameWords {
  std::string engine;
  std::string recompute;
  std::string precision;  // "engine": what the profile says
  std::string optimizer;
  std::string device;

  friend bool operator==(const FrameWords&, const FrameWords&) = default;
};

/// What rows of one model, engine and way of training share; made once.
struct RunFrame {
  FrameWords words;
  Job job;  // without placement and batch
  Prepared prepared;
};

/// One row's job in parts: a frame and what is the row's own.
struct RunPlan {
  std::shared_ptr<const RunFrame> frame;
  Placement placement;
  Schedule schedule;
  std::vector<AttentionExchange> attention;
  Batch batch;
  std::optional<std::int64_t> first_stage_blocks;
  bool host_runs_ahead = false;
  double host_pace = 1;            // see RunFacts
  std::optional<Bytes> capacity;   // of the device, if the row names it
  std::optional<Cluster> cluster;  // what times are derived on, if the row names a device
  std::string placement_text;
};

/// The placement in the grammar's words: axes of degree one are left out. Case: dp 8, tp 2 with
/// sequence parallelism, stage 1, order pp dp cp ep tp: "dp=8:zero1 tp=2:tp+sp".
std::string placement_text(const RunFacts& facts, const RunLayout& layout,
                           const std::string& schedule_word);

/// Makes plans and keeps what rows share. Not for use by several threads at once; the plans are.
class RunPlanner {
 public:
  /// `catalog` and `validation` must outlive the planner. `engine` stands for every row's own,
  /// but where it names that without a version; throws InputError if it is not known.
  RunPlanner(const Catalog& catalog, const ValidationCatalog& validation,
             std::optional<std::string> engine);

  const Catalog& catalog() const { return *catalog_; }
  const Vocabulary& vocabulary() const { return strategies_.vocabulary; }

  /// Throws InputError that speaks of `where` for a word or a size that means nothing.
  RunPlan plan(const RunFacts& facts, const EngineRule& engine, const std::string& where);

  /// What the file of a device that a plan has met says, figure by figure; none of others.
  const std::vector<Fact>& device_facts(const std::string& device) const;

  /// Our word for a source's, by column; remembered for the list of facts. Throws if it is not
  /// known.
  std::string word_of(const std::string& column, const std::string& theirs,
                      const std::string& where);

 private:
  std::shared_ptr<const RunFrame> frame_of(const RunFacts& facts, const EngineRule& engine,
                                           const std::string& where);
  std::optional<std::string> word_of_people(const std::string& column,
                                            const std::string& theirs) const;
  std::vector<std::string> names_for(const std::string& column) const;
  const Model& model_of(const RunShape& shape, const std::string& where);
  std::string engine_of(const EngineRule& rule) const;
  const Profile& profile_of(const std::string& name, const std::string& where);
  Job adapted_job(const RunFacts& facts, const FrameWords& words) const;
  static Cluster cluster_of_one(const Device& device);
  const Device& device_of(const std::string& device, const std::string& where);
  bool host_runs_ahead(const RunFacts& facts, const RunPlan& plan, const std::string& where);

  const Catalog* catalog_;
  const ValidationCatalog* validation_;
  std::optional<std::string> engine_;
  StrategyCatalog strategies_;
  std::map<RunShape, Model> models_;
  std::map<std::string, Profile> profiles_;
  std::map<std::pair<RunShape, std::string>, std::shared_ptr<const RunFrame>> frames_;
  std::map<std::string, DeviceSheet> devices_;
};

/// The whole job. Where the row knows how many blocks the first stage holds and the profile's cut
/// gives it another number, the difference goes to the second stage.
Job job_of(const RunPlan& plan);

}  // namespace placet
