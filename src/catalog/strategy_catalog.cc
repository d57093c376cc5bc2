#include "catalog/strategy_catalog.h"

#include <algorithm>
#include <array>
#include <utility>

#include "catalog/memory.h"
#include "catalog/reader.h"
#include "catalog/schedule_table.h"
#include "catalog/words.h"
#include "units/checked.h"
#include "units/error.h"
#include "units/nearest.h"

namespace placet {
namespace {

constexpr std::int64_t kMostChunks = 1024;
constexpr std::int64_t kMostGroup = 1 << 20;

constexpr const char* kStrategySchema = "placet.strategy/1";
constexpr const char* kScheduleSchema = "placet.schedule/1";
constexpr const char* kAttentionSchema = "placet.attention/1";

struct Heading {
  std::string name;
  std::string description;
  std::vector<std::string> sources;
};

Heading read_heading(const Reader& reader, const std::string& schema, const std::string& name) {
  if (reader.at("schema").text() != schema) {
    reader.at("schema").fail("is another schema", '"' + schema + '"');
  }
  if (reader.at("name").text() != name) {
    reader.at("name").fail("differs from the name of its file", '"' + name + '"');
  }
  Heading heading{name, reader.at("description").text(), {}};
  for (const Reader& source : reader.at("sources").items()) {
    heading.sources.push_back(source.text());
  }
  if (heading.sources.empty()) reader.at("sources").fail("is empty", "at least one source");
  return heading;
}

Keep read_keep(const Reader& reader) {
  const std::vector<std::string> words = {"none", "backward", "step"};
  return static_cast<Keep>(reader.one_of(words));
}

Medium read_medium(const Reader& reader) {
  const std::vector<std::string> words = {"device", "host", "nvme"};
  return static_cast<Medium>(reader.one_of(words));
}

IndexSet read_indices(const Reader& reader) {
  IndexSet set = 0;
  for (const Reader& item : reader.items()) {
    set |= bit_of(read_enum<Index>(item, kIndexCount, [](Index index) { return name_of(index); }));
  }
  if (set == 0) reader.fail("is empty", "indices that the cut divides");
  return set;
}

/// Whole states only: a strategy holds no number.
std::array<std::optional<Offload>, 4> read_offload(const Reader& reader) {
  std::array<std::optional<Offload>, 4> offload;
  reader.allow({"parameters", "optimizer", "gradients", "activations"});
  for (State state : kStates) {
    const auto medium = reader.find(name_of(state));
    if (!medium) continue;
    const Offload whole{.medium = read_medium(*medium)};
    if (whole.medium == Medium::device) medium->fail("is no offload", "host or nvme");
    offload[static_cast<std::size_t>(state)] = whole;
  }
  return offload;
}

PartialHow read_partial(const Reader& reader) {
  reader.allow({"cut", "parameters", "optimizer", "gradients", "activations", "keep", "offload",
                "update", "indices", "schedule", "attention"});
  PartialHow partial;
  if (const auto cut = reader.find("cut")) partial.cut = read_cut(*cut);
  for (State state : kStates) {
    const auto mode = reader.find(name_of(state));
    if (!mode) continue;
    partial.modes[static_cast<std::size_t>(state)] = read_enum<Mode>(*mode, kModeCount, symbol_of);
  }
  if (const auto keep = reader.find("keep")) partial.keep = read_keep(*keep);
  if (const auto offload = reader.find("offload")) partial.offload = read_offload(*offload);
  if (const auto update = reader.find("update")) partial.update = read_medium(*update);
  if (const auto indices = reader.find("indices")) partial.tensor_indices = read_indices(*indices);
  if (const auto word = reader.find("schedule")) partial.schedule = {word->text(), {}};
  if (const auto word = reader.find("attention")) partial.attention = {word->text(), {}};
  return partial;
}

PartialHow read_partial_at(const Reader& reader, std::string_view key) {
  const auto found = reader.find(key);
  return found ? read_partial(*found) : PartialHow{};
}

Selector read_selector(const std::string& word, const Reader& reader) {
  if (word == "checkpoints") return Checkpoints{};
  std::vector<std::string> words = {"checkpoints"};
  for (int c = 0; c < kTensorClassCount; ++c) {
    const auto tensor_class = static_cast<TensorClass>(c);
    if (name_of(tensor_class) == word) return tensor_class;
    words.emplace_back(name_of(tensor_class));
  }
  throw InputError({.where = reader.where(),
                    .value = word,
                    .problem = "is not a class of tensors",
                    .allowed = list_words(words),
                    .nearest = nearest(word, words)});
}

Meaning read_meaning(const Reader& reader) {
  Meaning meaning{read_partial_at(reader, "sets"), read_partial_at(reader, "suggests"), {}};
  const auto classes = reader.find("classes");
  if (!classes) return meaning;
  for (const auto& [word, part] : classes->members()) {
    part.allow({"sets", "suggests"});
    ClassPart one{read_selector(word, part), read_partial_at(part, "sets"),
                  read_partial_at(part, "suggests")};
    for (const PartialHow* partial : {&one.sets, &one.suggests}) {
      if (!partial->schedule && !partial->attention) continue;
      part.fail("names a realisation", "realisations of the axis, not of a class");
    }
    meaning.classes.push_back(std::move(one));
  }
  return meaning;
}

Strategy read_strategy(const Reader& reader, const std::string& name) {
  reader.allow({"schema", "name", "description", "sources", "prints_as", "sets", "suggests",
                "classes", "rewrites", "breaks", "because", "keeps"});
  Heading heading = read_heading(reader, kStrategySchema, name);
  Strategy strategy{.name = heading.name,
                    .description = std::move(heading.description),
                    .sources = std::move(heading.sources),
                    .meaning = read_meaning(reader)};
  if (const auto terms = reader.find("prints_as")) strategy.prints_as = terms->text();
  if (reader.has("rewrites")) strategy.meaning.sets.method = strategy.name;
  if (strategy.meaning == Meaning{})
    reader.fail("says nothing", "at least sets, suggests or classes");
  return strategy;
}

/// The rewrites of a strategy file, if it has some.
std::optional<Method> read_method(const Reader& reader, const std::string& name) {
  for (const char* key : {"breaks", "because", "keeps"}) {
    if (reader.has(key) && !reader.has("rewrites")) {
      reader.at(key).fail("is said without rewrites", "rewrites too");
    }
  }
  const auto rewrites = reader.find("rewrites");
  if (!rewrites) return std::nullopt;
  static const std::vector<std::string> kConditions = {
      "gradient_integrity", "state_consistency", "update_integrity", "input_integrity", "order"};
  Method method{.name = name,
                .axis = {},
                .rewrites = {},
                .breaks = kConditions[reader.at("breaks").one_of(kConditions)],
                .because = reader.at("because").text(),
                .keeps = reader.at("keeps").text()};
  for (const Reader& item : rewrites->items()) method.rewrites.push_back(item.text());
  if (method.rewrites.empty()) rewrites->fail("is empty", "at least one rewrite");
  return method;
}

// --- schedules

std::vector<std::string> hosting_words() { return {"single", "loop", "vee", "bidirectional"}; }

std::vector<std::string> order_words() {
  return {"all_forward", "one_forward_one_backward", "interleaved", "split_single",
          "split_vee",   "bidirectional_split"};
}

/// Which order works on which hosting.
bool go_together(Hosting hosting, Order order) {
  switch (order) {
    case Order::all_forward:
      return true;
    case Order::one_forward_one_backward:
    case Order::split_single:
      return hosting == Hosting::single;
    case Order::interleaved:
      return hosting == Hosting::loop;
    case Order::split_vee:
      return hosting == Hosting::vee;
    case Order::bidirectional_split:
      return hosting == Hosting::vee || hosting == Hosting::bidirectional;
    case Order::table:
    case Order::split_table:
      return hosting == Hosting::table;
  }
  return false;
}

ScheduleTemplate::Argument read_argument(const Reader& reader) {
  reader.allow({"sets", "least", "most"});
  const std::vector<std::string> fields = {"chunks", "group"};
  ScheduleTemplate::Argument argument;
  argument.field = static_cast<ScheduleTemplate::Argument::Field>(reader.at("sets").one_of(fields));
  const bool is_chunks = argument.field == ScheduleTemplate::Argument::Field::chunks;
  const std::int64_t most = is_chunks ? kMostChunks : kMostGroup;
  argument.least = reader.at("least").whole({1, most});
  argument.most = reader.at("most").whole({argument.least, most});
  return argument;
}

ScheduleTemplate read_schedule(const std::filesystem::path& path, const Reader& reader,
                               const std::string& name) {
  ScheduleTemplate out;
  if (const auto table = reader.find("table")) {
    for (const char* key : {"hosting", "order", "chunks", "arguments"}) {
      if (reader.has(key)) reader.at(key).fail("is said beside a table", "one of both");
    }
    out.schedule = read_schedule_table(path, *table, name);
    return out;
  }
  Schedule& schedule = out.schedule;
  schedule.name = name;
  schedule.hosting = static_cast<Hosting>(reader.at("hosting").one_of(hosting_words()));
  schedule.order = static_cast<Order>(reader.at("order").one_of(order_words()));
  if (!go_together(schedule.hosting, schedule.order)) {
    reader.at("order").fail("cannot work on this hosting", "an order made for it");
  }
  const bool two = schedule.hosting == Hosting::vee || schedule.hosting == Hosting::bidirectional;
  const std::int64_t fixed = two ? 2 : 1;
  const std::int64_t most = schedule.hosting == Hosting::loop ? kMostChunks : fixed;
  schedule.chunks = reader.at("chunks").whole({fixed, most});
  if (const auto arguments = reader.find("arguments")) {
    for (const Reader& argument : arguments->items()) {
      out.arguments.push_back(read_argument(argument));
    }
    if (schedule.hosting != Hosting::loop) arguments->fail("do not fit", "arguments of loops only");
  }
  return out;
}

// --- attention

constexpr std::array kMovements = {"gather",     "pieces", "scatter_sum",
                                   "pieces_sum", "heads",  "tokens"};
constexpr std::array kTensors = {"query",           "keys",           "values",
                                 "output",          "query_gradient", "keys_gradient",
                                 "values_gradient", "output_gradient"};

ExchangeStep read_step(const Reader& reader) {
  reader.allow({"movement", "tensors", "together", "phase"});
  ExchangeStep step;
  const std::vector<std::string> movements(kMovements.begin(), kMovements.end());
  const std::vector<std::string> tensors(kTensors.begin(), kTensors.end());
  const std::vector<std::string> phases = {"forward", "backward"};
  step.movement = static_cast<ExchangeStep::Movement>(reader.at("movement").one_of(movements));
  for (const Reader& tensor : reader.at("tensors").items()) {
    step.tensors.push_back(static_cast<AttentionTensor>(tensor.one_of(tensors)));
  }
  if (step.tensors.empty()) reader.at("tensors").fail("is empty", "at least one tensor");
  step.together = reader.at("together").flag();
  step.in_backward = reader.at("phase").one_of(phases) == 1;
  return step;
}

AttentionExchange read_attention(const Reader& reader, const std::string& name) {
  AttentionExchange exchange;
  exchange.name = name;
  for (const Reader& step : reader.at("steps").items()) exchange.steps.push_back(read_step(step));
  if (exchange.steps.empty()) reader.at("steps").fail("is empty", "at least one movement");
  exchange.whole_keys_live = reader.at("whole_keys_live").flag();
  exchange.cuts_heads = reader.at("cuts_heads").flag();
  exchange.sequence_chunks = reader.at("sequence_chunks").whole({1, kMostChunks});
  return exchange;
}

// --- folders

constexpr std::array kFolders = {"strategies", "schedules", "attention"};

/// The word that stands where none is written, and the layer of the file that says so.
struct DefaultWord {
  std::string name;
  std::size_t layer = 0;
};

/// What schedules and exchanges have in common.
Realisation read_word(const Reader& reader, const std::string& schema, const std::string& name) {
  Heading heading = read_heading(reader, schema, name);
  return {.name = heading.name,
          .description = std::move(heading.description),
          .sources = std::move(heading.sources),
          .meaning = read_meaning(reader)};
}

Realisation::Range range_of(const ScheduleTemplate::Argument& argument) {
  const bool is_chunks = argument.field == ScheduleTemplate::Argument::Field::chunks;
  return {.what = is_chunks ? "stages per device" : "micro-batches per group",
          .least = argument.least,
          .most = argument.most};
}

/// Reads the three folders. What is wrong in a file of an overlay is kept for who uses its word.
class WordFolders {
 public:
  explicit WordFolders(const Catalog& catalog) : catalog_(catalog) {}

  StrategyCatalog read() {
    read_folder("strategies", [&](const CatalogFile& file) { read_strategy_file(file); });
    read_folder("schedules", [&](const CatalogFile& file) { read_schedule_file(file); });
    read_folder("attention", [&](const CatalogFile& file) { read_exchange_file(file); });
    out_.default_schedule = default_of("schedules", schedule_);
    out_.default_attention = default_of("attention", exchange_);
    drop_strategies_without_realisation();
    out_.vocabulary = ordered(std::move(out_.vocabulary));
    return std::move(out_);
  }

 private:
  bool is_own(const CatalogFile& file) const { return file.layer < catalog_.overlays.size(); }

  void keep_fault(const std::string& name, const InputFault& fault) {
    out_.vocabulary.unreadable.push_back({name, fault});
  }

  template <class Read>
  void read_folder(const char* folder, Read read) {
    for (const CatalogFile& file : files_in(catalog_, folder)) {
      if (!is_own(file)) {
        read(file);
        continue;
      }
      try {
        require_word(folder, file);
        read(file);
      } catch (const InputError& error) {
        keep_fault(file.name, error.fault());
      }
    }
  }

  /// A user's word must be one, and no word of another folder.
  void require_word(std::string_view folder, const CatalogFile& file) const {
    try {
      ordered({.strategies = {{.name = file.name}}, .realisations = {}});
    } catch (const InputError& error) {
      InputFault fault = error.fault();
      fault.where = file.path.string();
      throw InputError(fault);
    }
    for (const char* other : kFolders) {
      if (other == folder || !has_file(catalog_, other, file.name)) continue;
      refuse(file.path.string(), file.name, "is a word of another folder too",
             "another name than " + path_in(catalog_, other, file.name).string());
    }
  }

  void read_strategy_file(const CatalogFile& file) {
    const Document document = open_document(file.path);
    const Reader reader(document);
    Strategy strategy = read_strategy(reader, file.name);
    if (auto method = read_method(reader, file.name)) {
      out_.methods.emplace(file.name, std::move(*method));
    }
    out_.vocabulary.strategies.push_back(std::move(strategy));
  }

  void read_schedule_file(const CatalogFile& file) {
    const Document document = open_document(file.path);
    const Reader reader(document);
    reader.allow({"schema", "name", "description", "sources", "default", "sets", "suggests",
                  "hosting", "order", "chunks", "arguments", "table"});
    Realisation word = read_word(reader, kScheduleSchema, file.name);
    ScheduleTemplate schedule = read_schedule(file.path, reader, file.name);
    word.kind = Realisation::Kind::schedule;
    word.least_arguments = schedule.arguments.empty() ? 0 : 1;
    word.most_arguments = schedule.arguments.size();
    for (const auto& argument : schedule.arguments) word.ranges.push_back(range_of(argument));
    note_default(reader, file, schedule_);
    out_.schedules.emplace(file.name, std::move(schedule));
    out_.vocabulary.realisations.push_back(std::move(word));
  }

  void read_exchange_file(const CatalogFile& file) {
    const Document document = open_document(file.path);
    const Reader reader(document);
    reader.allow({"schema", "name", "description", "sources", "default", "sets", "suggests",
                  "steps", "whole_keys_live", "cuts_heads", "sequence_chunks"});
    Realisation word = read_word(reader, kAttentionSchema, file.name);
    word.kind = Realisation::Kind::attention;
    AttentionExchange exchange = read_attention(reader, file.name);
    note_default(reader, file, exchange_);
    out_.attention.emplace(file.name, std::move(exchange));
    out_.vocabulary.realisations.push_back(std::move(word));
  }

  /// The default of the strongest layer that has one.
  void note_default(const Reader& reader, const CatalogFile& file, DefaultWord& word) const {
    const auto flag = reader.find("default");
    if (!flag || !flag->flag()) return;
    if (!word.name.empty() && word.layer == file.layer) {
      flag->fail("is a second default", "one default; it is " + word.name);
    }
    if (word.name.empty() || file.layer < word.layer) word = {file.name, file.layer};
  }

  /// A default that is hidden by a file which is none, or cannot be read, stays the default word.
  std::string default_of(const char* folder, const DefaultWord& word) const {
    if (!word.name.empty()) return word.name;
    for (const CatalogFile& file : files_in(catalog_, folder)) {
      const auto root = catalog_.root / folder / (file.name + ".json");
      if (!is_own(file) || !has_file({catalog_.root}, folder, file.name)) continue;
      const Document document = open_document(root);
      const auto flag = Reader(document).find("default");
      if (flag && flag->flag()) return file.name;
    }
    throw InputError({.where = (catalog_.root / folder).string(),
                      .problem = "no file is marked as the default",
                      .allowed = "\"default\": true in one of them"});
  }

  /// A strategy may name a realisation; that must exist.
  void require_realisation(const Strategy& strategy,
                           const std::optional<RealisationWord>& word) const {
    if (!word || find_named(out_.vocabulary.realisations, word->word)) return;
    refuse_unreadable(out_.vocabulary, word->word);
    throw InputError({.where = path_in(catalog_, "strategies", strategy.name).string(),
                      .value = word->word,
                      .problem = "is not a known realisation",
                      .allowed = "a file of data/schedules or data/attention"});
  }

  static bool find_named(const std::vector<Realisation>& list, const std::string& name) {
    return std::ranges::find(list, name, &Realisation::name) != list.end();
  }

  void require_realisations(const Strategy& strategy) const {
    for (const PartialHow* partial : {&strategy.meaning.sets, &strategy.meaning.suggests}) {
      require_realisation(strategy, partial->schedule);
      require_realisation(strategy, partial->attention);
    }
  }

  bool lacks_realisation(const Strategy& strategy) {
    try {
      require_realisations(strategy);
    } catch (const InputError& error) {
      if (catalog_.overlays.empty()) throw;
      keep_fault(strategy.name, error.fault());
      return true;
    }
    return false;
  }

  void drop_strategies_without_realisation() {
    std::erase_if(out_.vocabulary.strategies,
                  [&](const Strategy& strategy) { return lacks_realisation(strategy); });
  }

  const Catalog& catalog_;
  StrategyCatalog out_;
  DefaultWord schedule_;
  DefaultWord exchange_;
};

[[noreturn]] void fail_word(const std::string& word, const std::string& noun,
                            const std::vector<std::string>& names) {
  throw InputError({.where = "placement",
                    .value = word,
                    .problem = "is not " + noun,
                    .allowed = list_words(names),
                    .nearest = nearest(word, names)});
}

template <class Value>
const Value& find_or_fail(const std::map<std::string, Value>& map, const std::string& word,
                          const std::string& noun) {
  const auto it = map.find(word);
  if (it != map.end()) return it->second;
  std::vector<std::string> names;
  names.reserve(map.size());
  for (const auto& [name, value] : map) names.push_back(name);
  fail_word(word, noun, names);
}

}  // namespace

std::shared_ptr<const StrategyCatalog> shared_strategies(const Catalog& catalog) {
  const auto read = [&] { return WordFolders(catalog).read(); };
  if (!catalog.memory) return std::make_shared<const StrategyCatalog>(read());
  return catalog.memory->get<StrategyCatalog>("strategies", read);
}

StrategyCatalog load_strategies(const Catalog& catalog) { return *shared_strategies(catalog); }

Schedule resolve_schedule(const StrategyCatalog& strategies,
                          const std::optional<RealisationWord>& word) {
  const RealisationWord asked = word.value_or(RealisationWord{strategies.default_schedule, {}});
  if (strategies.schedules.find(asked.word) == strategies.schedules.end()) {
    refuse_unreadable(strategies.vocabulary, asked.word);
  }
  const auto& found = find_or_fail(strategies.schedules, asked.word, "a schedule");
  Schedule schedule = found.schedule;
  ensure(asked.arguments.size() <= found.arguments.size(), "the grammar counts the arguments");
  for (std::size_t i = 0; i < asked.arguments.size(); ++i) {
    const ScheduleTemplate::Argument& argument = found.arguments[i];
    const bool is_chunks = argument.field == ScheduleTemplate::Argument::Field::chunks;
    const std::int64_t value = asked.arguments[i];
    if (value < argument.least || value > argument.most) {
      throw InputError({.where = "placement, " + asked.word,
                        .value = std::to_string(value),
                        .problem = is_chunks ? "is no number of stages per device"
                                             : "is no number of micro-batches per group",
                        .allowed = "a whole number from " + std::to_string(argument.least) +
                                   " to " + std::to_string(argument.most)});
    }
    (is_chunks ? schedule.chunks : schedule.group) = value;
  }
  return schedule;
}

AttentionExchange resolve_attention(const StrategyCatalog& strategies,
                                    const std::optional<RealisationWord>& word) {
  const std::string& name = word ? word->word : strategies.default_attention;
  if (strategies.attention.find(name) == strategies.attention.end()) {
    refuse_unreadable(strategies.vocabulary, name);
  }
  return find_or_fail(strategies.attention, name, "an exchange of attention");
}

namespace {

/// A table is made for so many devices.
Schedule fitting(Schedule schedule, std::int64_t degree) {
  if (schedule.hosting != Hosting::table) return schedule;
  if (degree == 1) return {.name = schedule.name};  // nothing is cut, and no order asked for
  const auto rows = static_cast<std::int64_t>(schedule.table.stages.size());
  if (rows == degree) return schedule;
  throw InputError({.where = "placement, " + schedule.name,
                    .value = std::to_string(degree),
                    .problem = "is not the degree of this table",
                    .allowed = std::to_string(rows) + ", a device for each row"});
}

}  // namespace

Schedule schedule_of(const StrategyCatalog& strategies, const Placement& placement) {
  std::optional<RealisationWord> word;
  std::int64_t degree = 1;
  for (const AxisPlacement& axis : placement.axes) {
    if (axis.how.cut == Cut::layer) degree = checked_multiply(degree, axis.degree, "stages");
    if (!axis.schedule) continue;
    if (word && *word != *axis.schedule) {
      throw InputError({.where = "placement, axis " + std::string(axis.axis.text()),
                        .value = axis.schedule->word,
                        .problem = "is a second schedule",
                        .allowed = "one schedule for all layer axes",
                        .nearest = word->word});
    }
    word = axis.schedule;
  }
  return fitting(resolve_schedule(strategies, word), degree);
}

std::vector<Method> methods_of(const StrategyCatalog& strategies, const Placement& placement) {
  std::vector<Method> methods;
  for (const AxisPlacement& axis : placement.axes) {
    if (!axis.method || axis.degree == 1) continue;
    methods.push_back(strategies.methods.at(*axis.method));
    methods.back().axis = std::string(axis.axis.text());
  }
  return methods;
}

std::vector<AttentionExchange> attention_of(const StrategyCatalog& strategies,
                                            const Placement& placement) {
  std::vector<AttentionExchange> exchanges;
  exchanges.reserve(placement.axes.size());
  for (const AxisPlacement& axis : placement.axes) {
    exchanges.push_back(resolve_attention(strategies, axis.attention));
  }
  return exchanges;
}

}  // namespace placet
