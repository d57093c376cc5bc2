#include "report/page_style.h"

namespace placet {
namespace {

constexpr std::string_view kPageStyle = R"css(
:root {
  --bg: #f6f7f9; --card: #fff; --ink: #1c2430; --soft: #5d6b7e; --line: #e2e6ec;
  --good: #1a7f4b; --bad: #c0362c;
  --parameters: #3568c9; --optimizer: #8a4fc4; --gradients: #d9882b;
  --activations: #2f9e6b; --transient: #22a3b5; --overhead: #98a3b3;
}
@media (prefers-color-scheme: dark) {
  :root {
    --bg: #12161c; --card: #1b212a; --ink: #e4e9f0; --soft: #98a5b6; --line: #2d3643;
    --good: #4cc38a; --bad: #ff7b6e;
    --parameters: #6d9bf1; --optimizer: #b383ea; --gradients: #eba95a;
    --activations: #55c592; --transient: #4fc6d6; --overhead: #7b8797;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--bg); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
}
main { max-width: 1080px; margin: 0 auto; padding: 32px 20px 60px; }
h1 { font-size: 26px; margin: 0 0 4px; letter-spacing: -.01em; }
h2 { font-size: 16px; margin: 0 0 14px; }
p { margin: 6px 0; }
.soft { color: var(--soft); font-weight: 400; }
code, pre, .mono {
  font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: 13px;
}
pre.card { white-space: pre-wrap; }
.card {
  background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 18px 20px; margin: 16px 0;
}
.facts { display: grid; grid-template-columns: max-content 1fr; gap: 4px 18px; margin: 12px 0 0; }
.facts dt { color: var(--soft); }
.facts dd { margin: 0; overflow-wrap: anywhere; }
.verdict { border-left: 5px solid var(--soft); font-size: 17px; font-weight: 600; }
.verdict.good { border-left-color: var(--good); color: var(--good); }
.verdict.bad { border-left-color: var(--bad); color: var(--bad); }
strong.good { color: var(--good); }
strong.bad { color: var(--bad); }
.points { width: 100%; max-width: 520px; display: block; }
.points circle { fill-opacity: .55; }
.equal { stroke: var(--soft); stroke-width: 1; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th {
  text-align: left; color: var(--soft); font-weight: 500; font-size: 12.5px;
  border-bottom: 1px solid var(--line); padding: 4px 18px 6px 0; white-space: nowrap;
}
td { border-bottom: 1px solid var(--line); padding: 6px 18px 6px 0; vertical-align: top; }
tr:last-child td { border-bottom: 0; }
tr.above td { border-bottom: 0; padding-bottom: 0; }
.scroll td:last-child { min-width: 9em; }
th.r, td.r { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.bars {
  display: grid; grid-template-columns: max-content 1fr max-content;
  gap: 10px 14px; align-items: center;
}
.bars svg { width: 100%; height: 22px; display: block; border-radius: 4px; }
.bars .n { font-variant-numeric: tabular-nums; white-space: nowrap; text-align: right; }
.bars code { overflow-wrap: anywhere; }
.legend {
  display: flex; flex-wrap: wrap; gap: 6px 18px; margin: 14px 0 0;
  font-size: 13px; color: var(--soft);
}
.legend i {
  display: inline-block; width: 11px; height: 11px; border-radius: 3px;
  margin-right: 6px; vertical-align: -1px;
}
.c-parameters { fill: var(--parameters); background: var(--parameters); }
.c-optimizer { fill: var(--optimizer); background: var(--optimizer); }
.c-gradients { fill: var(--gradients); background: var(--gradients); }
.c-activations { fill: var(--activations); background: var(--activations); }
.c-transient { fill: var(--transient); background: var(--transient); }
.c-overhead { fill: var(--overhead); background: var(--overhead); }
.s-idle { fill: var(--line); background: var(--line); }
.s-forward { fill: var(--parameters); background: var(--parameters); }
.s-again { fill: var(--transient); background: var(--transient); }
.s-backward { fill: var(--activations); background: var(--activations); }
.s-weights { fill: var(--optimizer); background: var(--optimizer); }
.s-message { fill: var(--gradients); background: var(--gradients); }
.s-host { fill: var(--bad); background: var(--bad); }
.s-update { fill: var(--overhead); background: var(--overhead); }
.odd { opacity: .72; }
.pipeline, .chart { display: grid; grid-template-columns: max-content 1fr; gap: 0 12px; }
.pipeline svg, .chart svg { width: 100%; display: block; overflow: visible; }
.number { fill: #fff; font-size: 10.5px; text-anchor: middle; pointer-events: none; }
.grid { stroke: var(--line); }
.peak { stroke: var(--ink); stroke-dasharray: 5 4; }
.point-label { fill: var(--ink); font-size: 12px; text-anchor: middle; }
.x-axis, .y-axis { position: relative; font-size: 12px; color: var(--soft); }
.x-axis { height: 20px; margin-top: 4px; }
.x-axis span { position: absolute; transform: translateX(-50%); white-space: nowrap; }
.y-axis { min-width: 3.4em; }
.y-axis span { position: absolute; right: 0; transform: translateY(-50%); white-space: nowrap; }
.axis-title { font-size: 12px; color: var(--soft); margin: 0 0 8px; }
.axis-title.right { text-align: right; }
.pipeline .stages span {
  display: block; height: 22px; line-height: 18px; font-size: 13px; color: var(--soft);
}
.track { fill: var(--line); }
.limit { stroke: var(--bad); stroke-width: 2; }
.mode {
  display: inline-block; min-width: 30px; text-align: center; margin-right: 4px;
  border: 1px solid var(--line); border-radius: 6px; padding: 0 7px;
}
.mode.S, .mode.Sx {
  background: color-mix(in srgb, var(--parameters) 18%, transparent); border-color: transparent;
}
.mode.O, .mode.M {
  background: color-mix(in srgb, var(--gradients) 20%, transparent); border-color: transparent;
}
.finding { border-left: 4px solid var(--soft); padding: 2px 0 2px 14px; margin: 12px 0; }
.finding.error { border-color: var(--bad); }
.finding.warning { border-color: var(--gradients); }
.finding.advice { border-color: var(--transient); }
details { margin-top: 14px; }
summary { cursor: pointer; color: var(--soft); }
details > div { margin-top: 10px; }
footer { margin-top: 28px; font-size: 12.5px; color: var(--soft); }
.below { position: sticky; left: 0; max-width: min(100%, calc(100vw - 70px)); }
.below code { overflow-wrap: anywhere; }
@media (max-width: 640px) {
  main { padding: 20px 12px 40px; }
  .bars { grid-template-columns: 1fr; }
  .card { padding: 14px; }
  .verdict { font-size: 16px; }
  .number, .spare { display: none; }
  th, td { padding-right: 12px; }
}
@media print {
  body { background: #fff; }
  .card { break-inside: avoid; }
}
)css";

}  // namespace

std::string_view page_style() { return kPageStyle; }

}  // namespace placet
