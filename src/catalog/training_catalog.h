// Number formats and optimizers by name: data/precisions, data/formats and data/optimizers
// (docs/formats.md).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "catalog/catalog.h"
#include "model/model.h"
#include "profile/training.h"

namespace placet {

/// The format at rest of frozen tensors of some classes that have two dims or more.
struct FrozenMatrices {
  ClassSet classes = 0;
  StorageFormat format;

  friend bool operator==(const FrozenMatrices&, const FrozenMatrices&) = default;
};

/// What `--precision` says: the formats of the states, and formats of parameters of some classes.
struct PrecisionChoice {
  Precision precision;
  bool scales_loss_dynamically = false;
  std::vector<std::pair<TensorClass, StorageFormat>> parameters_at_rest;  // `experts=fp8`
  std::optional<StorageFormat> frozen_at_rest;                            // `frozen=nf4`
  std::optional<FrozenMatrices> frozen_matrices;                          // of a file (QLoRA)

  friend bool operator==(const PrecisionChoice&, const PrecisionChoice&) = default;
};

/// Reads `text`, the name of a file in data/precisions, a list of CLASS=DTYPE over `base`, or both:
/// "mixed", "gradients=fp32,reduce=fp32", "mixed,experts=fp8". A class is a state or use
/// (parameters, compute, gather, gradients, reduce, master), a class of tensors (experts, norms,
/// ...), or `frozen`. The last two take a name of data/formats too. Throws InputError that
/// speaks of `where`.
PrecisionChoice read_precision(const Catalog& catalog, const std::string& text,
                               const Precision& base, const std::string& where);

/// The precision named `name`. A file that says in what format products multiply is a recipe: all
/// else is as in `base`.
PrecisionChoice load_precision(const Catalog& catalog, const std::string& name,
                               const Precision& base, const std::string& where);

/// The format of products named `name`: as load_format, with the units that it needs.
ProductFormat load_product_format(const Catalog& catalog, const std::string& name,
                                  const std::string& where);

/// The format at rest named `name`: a number format, or a file in data/formats, which adds the
/// constants of its blocks. Throws InputError that speaks of `where`.
StorageFormat load_format(const Catalog& catalog, const std::string& name,
                          const std::string& where);

/// Sets the formats at rest of single parameters that `choice` asks for. What is said of a class
/// wins over `frozen`, and that over the file's frozen matrices; adapters have their own class
/// only.
void apply_formats(const PrecisionChoice& choice, Model& model);

/// The optimizer named `name`. Throws InputError that speaks of `where`.
Optimizer load_optimizer(const Catalog& catalog, const std::string& name, const std::string& where);

/// One line of a catalogue listing.
struct CatalogueEntry {
  std::string name;
  std::string title;
  std::string detail;  // what it amounts to, in a few words
  std::string source;
};

}  // namespace placet
