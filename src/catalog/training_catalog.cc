#include "catalog/training_catalog.h"

#include <algorithm>
#include <array>
#include <set>

#include "catalog/reader.h"
#include "catalog/words.h"
#include "units/error.h"
#include "units/nearest.h"

namespace placet {
namespace {

// The formats that a precision consists of, by key.
struct Format {
  const char* key;
  Dtype Precision::*field;
};
constexpr std::array kStateFormats = {
    Format{"parameters", &Precision::parameters}, Format{"compute", &Precision::compute},
    Format{"gather", &Precision::gather}, Format{"gradients", &Precision::gradients},
    Format{"reduce", &Precision::reduce}};

std::optional<Dtype> read_master(const std::string& text, const std::string& where) {
  if (text == "none") return std::nullopt;
  return read_dtype(text, where);
}

std::vector<std::string> class_words() {
  std::vector<std::string> words;
  words.reserve(kStateFormats.size() + 3 + kTensorClassCount);
  for (const Format& format : kStateFormats) words.emplace_back(format.key);
  words.emplace_back("master");
  words.emplace_back("frozen");
  words.emplace_back("products");
  for (int i = 0; i < kTensorClassCount; ++i) {
    words.emplace_back(name_of(static_cast<TensorClass>(i)));
  }
  return words;
}

// Sets the one format that `item`, "CLASS=DTYPE", speaks of.
void set_format(const Catalog& catalog, PrecisionChoice& choice, const std::string& item,
                const std::string& where) {
  const std::size_t equals = item.find('=');
  const std::string name = item.substr(0, equals);
  const std::string value = item.substr(equals + 1);
  if (value.empty()) {
    throw InputError({.where = where, .value = item, .problem = "names no number format"});
  }
  if (name == "master") {
    choice.precision.master = read_master(value, where);
    return;
  }
  if (name == "products") {
    choice.precision.products = load_product_format(catalog, value, where);
    return;
  }
  for (const Format& format : kStateFormats) {
    if (name != format.key) continue;
    choice.precision.*format.field = read_dtype(value, where);
    return;
  }
  if (name == "frozen") {
    choice.frozen_at_rest = load_format(catalog, value, where);
    return;
  }
  for (int i = 0; i < kTensorClassCount; ++i) {
    const auto tensor_class = static_cast<TensorClass>(i);
    if (name != name_of(tensor_class)) continue;
    choice.parameters_at_rest.emplace_back(tensor_class, load_format(catalog, value, where));
    return;
  }
  const std::vector<std::string> words = class_words();
  throw InputError({.where = where,
                    .value = name,
                    .problem = "is not a class",
                    .allowed = list_words(words),
                    .nearest = nearest(name, words)});
}

OptimizerState read_state(const Reader& reader) {
  reader.allow({"what", "dtype", "extent"});
  OptimizerState state;
  state.what = reader.at("what").text();
  state.dtype = read_dtype(reader.at("dtype"));
  if (const auto extent = reader.find("extent")) {
    const std::vector<std::string> words = {"element", "row_and_column", "block"};
    state.extent = static_cast<OptimizerState::Extent>(extent->one_of(words));
  }
  return state;
}

ClassSet read_classes(const Reader& reader) {
  ClassSet classes = 0;
  for (const Reader& one : reader.items()) {
    classes |= bit_of(
        read_enum<TensorClass>(one, kTensorClassCount, [](TensorClass c) { return name_of(c); }));
  }
  return classes;
}

FrozenMatrices read_frozen_matrices(const Catalog& catalog, const Reader& reader) {
  reader.allow({"classes", "format"});
  const Reader format = reader.at("format");
  return {.classes = read_classes(reader.at("classes")),
          .format = load_format(catalog, format.text(), format.where())};
}

UpdateCost read_cost(const Reader& reader) {
  reader.allow({"parameter_reads", "gradient_reads", "words_in_steps", "flops", "source"});
  reader.at("source").text();
  UpdateCost cost;
  const auto read = [&](const char* key, std::int64_t& figure) {
    if (const auto found = reader.find(key)) figure = found->whole({0, 1000});
  };
  read("parameter_reads", cost.parameter_reads);
  read("gradient_reads", cost.gradient_reads);
  read("words_in_steps", cost.words_in_steps);
  cost.flops = reader.at("flops").number({0, 10'000});
  return cost;
}

MatrixUpdate read_matrices(const Reader& reader) {
  reader.allow({"iterations", "products", "dtype", "passes", "source"});
  reader.at("source").text();
  MatrixUpdate out;
  out.iterations = reader.at("iterations").whole({1, 1000});
  const std::vector<std::string> words = {"gram", "square", "apply"};
  for (const Reader& product : reader.at("products").items()) {
    out.products.push_back(static_cast<MatrixProduct>(product.one_of(words)));
  }
  out.dtype = read_dtype(reader.at("dtype"));
  if (const auto passes = reader.find("passes")) out.passes = passes->whole({0, 1000});
  return out;
}

// The states of tensors of some classes, and of vectors.
void read_others(const Reader& reader, Optimizer& optimizer) {
  reader.allow({"classes", "states", "cost"});
  if (const auto cost = reader.find("cost")) optimizer.other_cost = read_cost(*cost);
  optimizer.other_classes = read_classes(reader.at("classes"));
  for (const Reader& state : reader.at("states").items()) {
    optimizer.other_states.push_back(read_state(state));
  }
}

void apply_formats(const PrecisionChoice& choice, Parameter& parameter) {
  const auto store = [&](const StorageFormat& format) {
    parameter.dtype = format.dtype;
    parameter.constants = format.constants;
  };
  const ClassSet adapters = bit_of(TensorClass::adapters);
  const ClassSet classes = parameter.classes & adapters ? adapters : parameter.classes;
  if (!parameter.trainable && choice.frozen_matrices && parameter.dims.size() > 1 &&
      (parameter.classes & choice.frozen_matrices->classes) != 0) {
    store(choice.frozen_matrices->format);
  }
  if (!parameter.trainable && choice.frozen_at_rest) store(*choice.frozen_at_rest);
  for (const auto& [tensor_class, format] : choice.parameters_at_rest) {
    if (contains(classes, tensor_class)) store(format);
  }
}

bool sets_no_class(const std::string& item) { return item.find('=') == std::string::npos; }

/// A name may come first; what follows are formats of classes, each once.
void check_precision_items(const std::vector<std::string>& items, const std::string& text,
                           const std::string& where) {
  std::set<std::string> classes;
  for (const std::string& item : items) {
    if (item.empty()) {
      throw InputError({.where = where,
                        .value = text,
                        .problem = "has nothing before or after a comma",
                        .allowed = "one name, then CLASS=DTYPE,..."});
    }
    if (!sets_no_class(item) && !classes.insert(item.substr(0, item.find('='))).second) {
      throw InputError({.where = where, .value = item, .problem = "sets a class a second time"});
    }
    if (sets_no_class(item) && &item != &items.front()) {
      throw InputError({.where = where,
                        .value = item,
                        .problem = "is a second name",
                        .allowed = "one name, then CLASS=DTYPE,..."});
    }
  }
}

// Schema, name and source stand in every file of the catalogue.
void check_heading(const Reader& reader, const std::string& schema, const std::string& name) {
  if (reader.at("schema").text() != schema) {
    reader.at("schema").fail("is another schema", '"' + schema + '"');
  }
  if (reader.at("name").text() != name) {
    reader.at("name").fail("differs from the name of its file", '"' + name + '"');
  }
  reader.at("title").text();
  reader.at("source").text();
}

void read_states(const Reader& reader, Precision& precision) {
  for (const Format& format : kStateFormats) {
    precision.*format.field = read_dtype(reader.at(format.key));
  }
  precision.master = read_master(reader.at("master").text(), reader.at("master").where());
}

}  // namespace

PrecisionChoice load_precision(const Catalog& catalog, const std::string& name,
                               const Precision& base, const std::string& where) {
  const Document document = open_document(file_of(catalog, "precisions", "precision", name, where));
  const Reader reader(document);
  reader.allow({"schema", "name", "title", "source", "parameters", "compute", "gather", "gradients",
                "reduce", "master", "scales_loss_dynamically", "frozen_matrices", "products",
                "scales_from_before"});
  check_heading(reader, "placet.precision/1", name_of_reference(name));
  PrecisionChoice choice;
  if (const auto products = reader.find("products")) {
    choice.precision = base;
    choice.precision.products = load_product_format(catalog, products->text(), products->where());
    const auto before = reader.find("scales_from_before");
    choice.precision.products->scales_from_before = before && before->flag();
  } else {
    read_states(reader, choice.precision);
  }
  choice.precision.name = name;
  if (const auto scales = reader.find("scales_loss_dynamically")) {
    choice.scales_loss_dynamically = scales->flag();
  }
  if (const auto frozen = reader.find("frozen_matrices")) {
    choice.frozen_matrices = read_frozen_matrices(catalog, *frozen);
  }
  return choice;
}

PrecisionChoice read_precision(const Catalog& catalog, const std::string& text,
                               const Precision& base, const std::string& where) {
  const std::vector<std::string> items = split_words(text, ',');
  check_precision_items(items, text, where);
  const bool named = sets_no_class(items.front());
  PrecisionChoice choice{.precision = base};
  if (named) choice = load_precision(catalog, items.front(), base, where);
  for (const std::string& item : items) {
    if (!sets_no_class(item)) set_format(catalog, choice, item, where);
  }
  const bool changed = !named || items.size() > 1;
  if (changed) choice.precision.name = named ? text : base.name + "," + text;
  return choice;
}

void apply_formats(const PrecisionChoice& choice, Model& model) {
  for (UnitKind& kind : model.kinds) {
    for (Parameter& parameter : kind.parameters) apply_formats(choice, parameter);
  }
}

ProductFormat load_product_format(const Catalog& catalog, const std::string& name,
                                  const std::string& where) {
  ProductFormat format{.name = name, .numbers = load_format(catalog, name, where)};
  format.units = format.numbers.dtype;
  if (!has_file(catalog, "formats", name)) return format;
  const Document document = open_document(path_in(catalog, "formats", name));
  if (const auto units = Reader(document).find("units")) format.units = read_dtype(*units);
  return format;
}

StorageFormat load_format(const Catalog& catalog, const std::string& name,
                          const std::string& where) {
  if (!has_file(catalog, "formats", name)) return {.dtype = read_dtype(name, where)};
  const Document document = open_document(path_in(catalog, "formats", name));
  const Reader reader(document);
  reader.allow({"schema", "name", "title", "source", "dtype", "constants", "units"});
  check_heading(reader, "placet.format/1", name);
  StorageFormat format{.dtype = read_dtype(reader.at("dtype"))};
  for (const Reader& constants : reader.at("constants").items()) {
    constants.allow({"what", "dtype", "elements"});
    constants.at("what").text();
    format.constants.push_back({.dtype = read_dtype(constants.at("dtype")),
                                .elements = constants.at("elements").whole({1, 1'000'000})});
  }
  return format;
}

Optimizer load_optimizer(const Catalog& catalog, const std::string& name,
                         const std::string& where) {
  const Document document = open_document(file_of(catalog, "optimizers", "optimizer", name, where));
  const Reader reader(document);
  reader.allow({"schema", "name", "title", "source", "states", "region", "block", "keeps_master",
                "others", "updates", "cost", "matrices"});
  check_heading(reader, "placet.optimizer/1", name_of_reference(name));
  Optimizer optimizer;
  optimizer.name = name;
  for (const Reader& state : reader.at("states").items()) {
    optimizer.states.push_back(read_state(state));
  }
  const std::vector<std::string> regions = {"element", "block", "row_and_column", "matrix"};
  optimizer.region = static_cast<UpdateRegion>(reader.at("region").one_of(regions));
  const auto block = reader.find("block");
  if (optimizer.region == UpdateRegion::block && !block) reader.at("block");
  if (block) optimizer.block = block->whole({1, 1'000'000});
  if (const auto others = reader.find("others")) read_others(*others, optimizer);
  optimizer.keeps_master = reader.at("keeps_master").flag();
  if (const auto updates = reader.find("updates")) optimizer.updates = updates->flag();
  if (const auto cost = reader.find("cost")) optimizer.cost = read_cost(*cost);
  if (const auto matrices = reader.find("matrices")) {
    if (optimizer.region != UpdateRegion::matrix) {
      matrices->fail("is of an optimizer that sees no matrix whole", "\"region\": \"matrix\"");
    }
    optimizer.matrices = read_matrices(*matrices);
  }
  return optimizer;
}

}  // namespace placet
