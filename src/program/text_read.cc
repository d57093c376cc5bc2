// The reader of whole programs: what stands at the top of the text.
#include <algorithm>
#include <charconv>
#include <utility>

#include "program/grammar.h"
#include "program/kernel_text.h"
#include "program/text.h"
#include "program/text_names.h"
#include "program/text_reader.h"
#include "units/error.h"

namespace placet {
namespace {

constexpr std::size_t kLongestText = std::size_t{64} << 20;

/// Names of procedures that the text has, wherever they stand: calls may stand before them.
void find_procedures(ProgramReader& r, Tokens ahead) {
  int depth = 0;
  for (; ahead.kind() != Tokens::Kind::end; ahead.next()) {
    if (ahead.is("{")) ++depth;
    if (ahead.is("}")) --depth;
    if (depth != 0 || !ahead.is("procedure")) continue;
    ahead.next();
    if (ahead.at_name() && ahead.next_begins() == '(') r.procedures.declare(ahead);
  }
}

void read_axis(ProgramReader& r) {
  ProgramAxis axis;
  axis.name = r.axes.name(r.axes.declare(r.in));
  r.in.expect("=");
  axis.degree = read_number(r.in, "a degree", 1, kLargestDegree);
  if (r.in.take("[")) {
    do {
      axis.shares.push_back(read_number(r.in, "a share", 0, kLargestExtent));
    } while (r.in.take(","));
    r.in.expect("]");
  }
  r.program.axes.push_back(std::move(axis));
}

void read_mesh(ProgramReader& r) {
  r.in.expect("mesh");
  while (r.in.at_name() && r.in.next_begins() == '=') read_axis(r);
  r.in.expect("micro-batches");
  if (r.in.kind() != Tokens::Kind::integer) return read_axis(r);
  r.program.axes.push_back(
      {.name = r.axes.name(r.axes.add(r.in, std::string(kMicroBatch))),
       .degree = read_number(r.in, "how many micro-batches", 1, kLargestDegree)});
}

void read_dim(ProgramReader& r) {
  LogicalDim dim{.name = r.dims.name(r.dims.declare(r.in))};
  dim.extent = read_number(r.in, "the extent", 1, kLargestExtent);
  if (r.in.take_keyword("chosen")) {
    dim.chosen = read_number(r.in, "how many of them are chosen", 1, dim.extent);
  }
  r.program.dims.push_back(std::move(dim));
}

void read_program_kernel(ProgramReader& r) {
  Kernel kernel = read_kernel(r.in);
  r.kernels.add(r.in, kernel.name);
  r.program.kernels.push_back(std::move(kernel));
}

PieceType read_piece(ProgramReader& r) {
  PieceType piece;
  r.in.expect("[");
  while (!r.in.take("]")) {
    DividedDim dim;
    dim.dim = r.dims.expect(r.in);
    dim.by = read_division(r);
    dim.shift = read_shift(r);
    piece.dims.push_back(std::move(dim));
    if (piece.dims.size() > kMostDims)
      r.in.refuse("follows too many dims of one tensor", std::to_string(kMostDims));
  }
  return piece;
}

/// "[u]", "[j]", "[u j]" or nothing.
void read_family_indices(Tokens& in, Family& family) {
  if (!in.take("[")) return;
  family.by_unit = in.take("u");
  family.by_micro_batch = in.take("j");
  if (!family.by_unit && !family.by_micro_batch) {
    in.refuse("is no index of a buffer", "[u], [j] or [u j]");
  }
  in.expect("]");
}

void read_buffer_declaration(ProgramReader& r) {
  Family family{.name = r.families.name(r.families.declare(r.in))};
  read_family_indices(r.in, family);
  const std::string format = r.in.expect_word("the format of its numbers: fp32, bf16, ...");
  const std::optional<Dtype> dtype = dtype_named(format);
  if (!dtype) {
    static const std::vector<std::string> kFormats = {"fp32",  "bf16",  "fp16", "fp8",
                                                      "int64", "int32", "int8", "uint8",
                                                      "nf4",   "fp4",   "fp64", "int4"};
    r.in.refuse_unknown(format, "a format of numbers", kFormats);
  }
  family.type.dtype = *dtype;
  while (r.in.is("[")) family.type.pieces.push_back(read_piece(r));
  if (r.in.take("/")) family.type.flat = read_level(r);
  if (r.in.take_keyword("on")) {
    r.in.expect("host");
    family.on_host = true;
  }
  r.program.families.push_back(std::move(family));
}

void read_procedure(ProgramReader& r) {
  const int number = r.procedures.expect(r.in);
  const auto i = static_cast<std::size_t>(number);
  for (const char* sign : {"(", "u", ",", "j", ")"}) r.in.expect(sign);
  r.program.procedures[i].name = r.procedures.name(number);
  r.program.procedures[i].body = read_body(r, StepPhase::forward, 0, r.lines.procedures[i]);
}

void read_item(ProgramReader& r) {
  if (r.in.is("kernel")) return read_program_kernel(r);
  if (r.in.take("dim")) return read_dim(r);
  if (r.in.take("buffer")) return read_buffer_declaration(r);
  if (r.in.take("procedure")) return read_procedure(r);
  if (r.in.take("class")) return read_class(r);
  if (r.in.take("reference")) return read_reference(r);
  static const std::vector<std::string> kItems = {"dim",    "kernel",    "reference",
                                                  "buffer", "procedure", "class"};
  const std::string word(r.in.token());
  r.in.next();
  r.in.refuse_unknown(word, "dim, kernel, reference, buffer, procedure or class", kItems);
}

}  // namespace

int NameTable::declare(Tokens& in) { return add(in, in.expect_name(what_)); }

int NameTable::add(const Tokens& in, std::string name) {
  const int number = static_cast<int>(names_.size());
  if (!numbers_.try_emplace(name, number).second) {
    in.refuse_name(name, "is the name of " + what_ + " already");
  }
  names_.push_back(std::move(name));
  return number;
}

int NameTable::find(std::string_view name) const {
  const auto found = numbers_.find(name);
  return found == numbers_.end() ? -1 : found->second;
}

int NameTable::expect(Tokens& in) const {
  const std::string name = in.expect_name(what_);
  const int number = find(name);
  if (number < 0) in.refuse_unknown(name, what_, names_);
  return number;
}

void ProgramReader::count_expanded(std::int64_t more) {
  expanded += more;
  if (expanded > kMostExpanded) {
    in.refuse("stands behind ranges that are too long in all",
              "at most " + std::to_string(kMostExpanded));
  }
}

std::int64_t read_number(Tokens& in, std::string_view what, std::int64_t least, std::int64_t most) {
  const std::string token(in.token().substr(0, 24));
  const std::int64_t number = in.expect_integer(what);
  if (number < least || number > most) {
    in.refuse_name(
        token, "is out of range",
        std::string(what) + " from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return number;
}

AxisList read_level(ProgramReader& r) {
  if (!r.in.take("(")) return {r.axes.expect(r.in)};
  AxisList level;
  while (!r.in.take(")")) level.push_back(r.axes.expect(r.in));
  return level;
}

Division read_division(ProgramReader& r) {
  Division division;
  while (r.in.take("/")) {
    division.push_back(read_level(r));
    if (division.size() > kMostDims)
      r.in.refuse("follows too many divisions of one dim", std::to_string(kMostDims));
  }
  return division;
}

std::int64_t read_shift(ProgramReader& r) {
  if (!r.in.take("+")) return 0;
  return read_number(r.in, "how many places further on", 1, kMostNumber);
}

IndexTerm read_term(Tokens& in) {
  if (in.kind() == Tokens::Kind::integer) {
    return {.offset = read_number(in, "an index", -kLargestOffset, kLargestOffset)};
  }
  const std::string word = in.expect_word("an index: u, j, u+1, j-1 or a number");
  IndexTerm term{.variable =
                     word[0] == 'u' ? IndexTerm::Variable::unit : IndexTerm::Variable::micro_batch};
  const bool known = word[0] == 'u' || word[0] == 'j';
  if (known && word.size() > 2 && word[1] == '-') {
    Tokens digits(std::string_view(word).substr(2), {});
    if (digits.kind() == Tokens::Kind::integer && digits.token().size() + 2 == word.size() &&
        digits.token().size() < 12) {
      term.offset = -digits.expect_integer("an offset");
      return term;
    }
  }
  if (!known || word.size() != 1) in.refuse_name(word, "is no index", "u, j, u+1, j-1 or a number");
  if (in.take("+")) {
    term.offset = read_number(in, "an offset", 0, kLargestOffset);
  } else if (in.take("-")) {
    term.offset = -read_number(in, "an offset", 0, kLargestOffset);
  } else if (in.kind() == Tokens::Kind::integer && in.token().starts_with('-')) {
    term.offset = read_number(in, "an offset", -kLargestOffset, 0);
  }
  return term;
}

std::vector<std::int64_t> read_coordinates(ProgramReader& r) {
  if (!r.in.take("(")) return {read_number(r.in, "a coordinate", 0, kLargestDegree)};
  std::vector<std::int64_t> list;
  while (!r.in.take(")")) {
    const std::int64_t first = read_number(r.in, "a coordinate", 0, kLargestDegree);
    const std::int64_t last =
        r.in.take("..") ? read_number(r.in, "a coordinate", first, kLargestDegree) : first;
    r.count_expanded(last - first + 1);
    for (std::int64_t c = first; c <= last; ++c) list.push_back(c);
  }
  return list;
}

bool is_program_text(std::string_view text) {
  try {
    Tokens in(text, {});
    return in.take("placet") && in.is("program");
  } catch (const InputError&) {
    return false;  // what it begins with is no token
  }
}

Program program_from(std::string_view text, const std::string& where) {
  if (text.size() > kLongestText) {
    throw InputError({.where = where, .problem = "is too long", .allowed = "at most 64 MiB"});
  }
  ProgramReader r(text, where);
  r.in.expect("placet");
  r.in.expect("program");
  if (!r.in.take("1")) r.in.refuse("is a version of the form that is not known", "1");
  find_procedures(r, r.in);
  r.program.procedures.resize(r.procedures.names().size());
  r.lines.procedures.resize(r.procedures.names().size());
  read_mesh(r);
  while (r.in.kind() != Tokens::Kind::end) read_item(r);
  require_wellformed(r.program, {.where = where, .lines = &r.lines});
  return std::move(r.program);
}

}  // namespace placet
