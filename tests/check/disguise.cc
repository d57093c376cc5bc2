#include "check/disguise.h"

#include <algorithm>

namespace placet::testing {
namespace {

class Disguise {
 public:
  explicit Disguise(Program& program)
      : program_(program), mesh_(static_cast<int>(program.axes.size()) - 1) {}

  void put_on() {
    std::reverse(program_.axes.begin(), program_.axes.end() - 1);
    for (std::size_t f = 0; f < program_.families.size(); ++f) {
      Family& family = program_.families[f];
      family.name = "b" + std::to_string(f * 7 % 1000) + "x" + std::to_string(f);
      for (PieceType& piece : family.type.pieces) {
        for (DividedDim& dim : piece.dims) turn(dim.by);
      }
      turn(family.type.flat);
    }
    for (std::size_t p = 0; p < program_.procedures.size(); ++p) {
      program_.procedures[p].name = "p" + std::to_string(p);
      turn(program_.procedures[p].body);
    }
    for (std::size_t c = 0; c < program_.classes.size(); ++c) {
      program_.classes[c].name = "c" + std::to_string(c);
      std::ranges::reverse(program_.classes[c].box);
      turn(program_.classes[c].body);
    }
    std::ranges::reverse(program_.classes);
  }

 private:
  int turned(int axis) const { return axis == mesh_ ? axis : mesh_ - 1 - axis; }
  void turn(AxisList& axes) const {
    for (int& axis : axes) axis = turned(axis);
  }
  void turn(Division& division) const {
    for (AxisList& level : division) turn(level);
  }

  void turn(std::vector<Step>& body) const {
    for (Step& step : body) {
      if (auto* loop = std::get_if<Loop>(&step.what)) turn(loop->body);
      auto* i = std::get_if<Instruction>(&step.what);
      if (i == nullptr) continue;
      i->label.clear();
      i->because.clear();
      i->phase = StepPhase::forward;
      turn(i->axes);
      for (Position& position : i->positions) turn(position.by);
    }
  }

  Program& program_;
  int mesh_;
};

}  // namespace

Program disguised(Program program) {
  Disguise(program).put_on();
  return program;
}

}  // namespace placet::testing
