#include "catalog/choices_catalog.h"

#include <algorithm>

#include "catalog/job.h"
#include "catalog/reader.h"
#include "placement/grammar.h"
#include "units/error.h"

namespace placet {
namespace {

constexpr const char* kChoicesSchema = "placet.choices/1";
constexpr std::int64_t kMostWeight = 64;

std::vector<std::string> role_words() {
  std::vector<std::string> words;
  words.reserve(kAxisRoleCount);
  for (int r = 0; r < kAxisRoleCount; ++r) {
    words.emplace_back(name_of(static_cast<AxisRole>(r)));
  }
  return words;
}

/// "" or a text.
std::string text_or_none(const Reader& reader) {
  if (!reader.is_text()) reader.fail("is no text", "terms of a placement, or \"\"");
  return reader.json().get<std::string>();
}

std::vector<std::string> read_any_texts(const Reader& reader) {
  std::vector<std::string> texts;
  for (const Reader& item : reader.items()) texts.push_back(text_or_none(item));
  if (texts.empty()) reader.fail("is empty", "at least one");
  return texts;
}

/// The terms of several parts, joined by '+'.
std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) {
    if (part.empty()) continue;
    text += (text.empty() ? "" : "+") + part;
  }
  return text;
}

/// The words that a state has on the axes of a role.
struct StateTexts {
  std::string replica, batch;
};

class ChoicesReader {
 public:
  ChoicesReader(const StrategyCatalog& strategies, const Reader& reader)
      : strategies_(strategies), reader_(reader) {}

  Choices read() {
    reader_.allow({"schema", "name", "description", "sources", "axes", "orders", "states",
                   "offload", "recompute", "stages"});
    if (reader_.at("schema").text() != kChoicesSchema) {
      reader_.at("schema").fail("is another schema", '"' + std::string(kChoicesSchema) + '"');
    }
    out_.name = reader_.at("name").text();
    reader_.at("description").text();
    if (reader_.at("sources").items().empty()) {
      reader_.at("sources").fail("is empty", "at least one source");
    }
    read_states();
    out_.offloads = read_any_texts(reader_.at("offload"));
    read_orders();
    reader_.at("axes").allow(role_words());
    for (int r = 0; r < kAxisRoleCount; ++r) read_role(static_cast<AxisRole>(r));
    read_recompute();
    read_stages();
    return std::move(out_);
  }

 private:
  void read_states() {
    for (const Reader& item : reader_.at("states").items()) {
      item.allow({"replica", "batch"});
      StateTexts texts{.replica = {}, .batch = item.at("batch").text()};
      StateWord word{.text = texts.batch};
      if (const auto replica = item.find("replica")) {
        texts.replica = replica->text();
        word.splits = true;
        word.text = texts.replica + " over " + texts.batch;
      }
      out_.states.push_back(std::move(word));
      states_.push_back(std::move(texts));
    }
    if (states_.empty()) reader_.at("states").fail("is empty", "at least one");
  }

  using RoleOrder = std::array<AxisRole, kAxisRoleCount>;

  static RoleOrder read_order(const Reader& list, const std::vector<std::string>& words) {
    RoleOrder order{};
    const std::vector<Reader> items = list.items();
    if (items.size() != order.size()) list.fail("is no order", "each role once");
    auto end = order.begin();
    for (const Reader& item : items) {
      const auto role = static_cast<AxisRole>(item.one_of(words));
      if (std::find(order.begin(), end, role) != end) item.fail("stands twice", "each role once");
      *end++ = role;
    }
    return order;
  }

  void read_orders() {
    const std::vector<std::string> words = role_words();
    for (const Reader& list : reader_.at("orders").items()) {
      const RoleOrder order = read_order(list, words);
      const std::array tail = {AxisRole::sequence, AxisRole::expert, AxisRole::tensor};
      if (!std::equal(tail.begin(), tail.end(), order.begin() + 3)) {
        list.fail("ends otherwise", "sequence, expert, tensor as the innermost axes");
      }
      out_.orders.push_back(order);
    }
    if (out_.orders.empty()) reader_.at("orders").fail("is empty", "at least one");
  }

  void read_role(AxisRole role) {
    const Reader axis = reader_.at("axes").at(name_of(role));
    axis.allow({"name", "words"});
    Choices::Role& own = out_.roles[at(role)];
    own.words = read_any_texts(axis.at("words"));
    const bool states = role != AxisRole::layer && role != AxisRole::tensor;
    std::vector<std::string> state_texts(1);
    if (states) {
      state_texts.resize(states_.size());
      for (std::size_t s = 0; s < states_.size(); ++s) state_texts[s] = state_text(role, s);
    }
    own.states = state_texts.size();
    for (const std::string& word : own.words) add_words(axis, role, word, state_texts);
  }

  void add_words(const Reader& axis, AxisRole role, const std::string& word,
                 const std::vector<std::string>& state_texts) {
    for (const std::string& state : state_texts) {
      for (const std::string& offload : out_.offloads) {
        out_.roles[at(role)].table.push_back(word_of(axis, role, joined({word, state, offload})));
      }
    }
  }

  const std::string& state_text(AxisRole role, std::size_t state) const {
    const StateTexts& texts = states_[state];
    return role == AxisRole::replica && out_.states[state].splits ? texts.replica : texts.batch;
  }

  AxisWord word_of(const Reader& axis, AxisRole role, const std::string& text) const {
    const std::string whole = axis.at("name").text() + "=2:" + text;
    AxisWord word{.text = text};
    try {
      const Placement placement = parse_placement(whole, strategies_.vocabulary);
      if (placement.axes.size() != 1) axis.fail("is more than one axis", "the terms of one");
      word.axis = placement.axes.front();
      // What is moved off the device is moved of the classes too of which a term speaks.
      for (Override& own : word.axis.overrides) own.how.offload = word.axis.how.offload;
      if (role == AxisRole::layer) word.schedule = schedule_of(strategies_, placement);
      if (role == AxisRole::layer && word.schedule.hosting == Hosting::table) {
        axis.fail("names a table, which is made for one number of devices and micro-batches",
                  "schedules that are rules; a table is for derive, simulate, lower and check");
      }
      if (role == AxisRole::sequence) word.attention = attention_of(strategies_, placement).front();
    } catch (const InputError& error) {
      axis.fail("makes \"" + whole + "\", which no placement is", error.fault().allowed);
    }
    return word;
  }

  void read_recompute() {
    for (const std::string& text : read_any_texts(reader_.at("recompute"))) {
      RecomputeWord word{.text = text, .recompute = {}};
      word.counted = text == "every" || text == "first";
      word.recompute =
          parse_recompute(word.counted ? text + "=1" : text, reader_.at("recompute").where());
      if (word.recompute.kind == Recompute::Kind::uniform) {
        reader_.at("recompute")
            .fail("has " + text + ", which no search looks at",
                  "none, full, selective, every or first");
      }
      out_.recompute.push_back(std::move(word));
    }
  }

  void read_stages() {
    for (const Reader& item : reader_.at("stages").items()) {
      item.allow({"embedding", "head"});
      out_.stages.push_back({.embedding = item.at("embedding").whole({0, kMostWeight}),
                             .head = item.at("head").whole({0, kMostWeight})});
    }
    if (out_.stages.empty()) reader_.at("stages").fail("is empty", "at least one");
  }

  const StrategyCatalog& strategies_;
  const Reader& reader_;
  std::vector<StateTexts> states_;
  Choices out_;
};

}  // namespace

Choices load_choices(const Catalog& catalog, const StrategyCatalog& strategies,
                     const std::string& name) {
  const Document document =
      open_document(file_of(catalog, "search", "choices", name, "data/search"));
  const Reader reader(document);
  Choices choices = ChoicesReader(strategies, reader).read();
  if (choices.name != name) reader.at("name").fail("differs from the name of its file", name);
  return choices;
}

}  // namespace placet
