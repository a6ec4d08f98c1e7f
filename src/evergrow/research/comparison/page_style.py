"""How the page of a comparison looks: light and dark, on a desk and on a phone."""

from __future__ import annotations

__all__ = ["STYLE"]

# Okabe and Ito's colours, lighter where the page is dark: every eye tells them apart.
STYLE = """
:root { color-scheme: light dark;
  --page: #ffffff; --ink: #1c2024; --faint: #5b6470; --rule: #d9dee3; --panel: #f4f6f8;
  --accent: #0072b2; --f0: #0072b2; --f1: #00805d; --f2: #c04f00; --f3: #b0447f; --on: #ffffff; }
@media (prefers-color-scheme: dark) { :root {
  --page: #14171a; --ink: #e8eaed; --faint: #a2abb5; --rule: #343b43; --panel: #1e2328;
  --accent: #56b4e9; --f0: #56b4e9; --f1: #3cc9a0; --f2: #f0a040; --f3: #e59ac4; --on: #14171a; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 70rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .5rem; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .6rem; }
h3 { font-size: .85rem; margin: 0 0 .3rem; color: var(--faint); font-weight: 600; }
p, li { overflow-wrap: anywhere; }
.cards + h3 { margin-top: 1.2rem; }
.lead { color: var(--faint); max-width: 46rem; margin: 0; }
code { font: .85em/1.4 ui-monospace, Menlo, Consolas, monospace; overflow-wrap: anywhere; }
.cards { display: grid; gap: .8rem; grid-template-columns: repeat(auto-fit, minmax(17rem, 1fr)); }
.card { background: var(--panel); border-radius: 8px; padding: .9rem 1rem; }
.card p { margin: .2rem 0; }
.card.first { border-left: 5px solid var(--accent); margin-bottom: .8rem; }
.choice { font-weight: 650; font-size: 1.1rem; }
.first .choice { font-size: 1.4rem; }
figure { margin: 0; overflow-x: auto; }
figure svg { display: block; width: 100%; min-width: 640px; max-width: 60rem; height: auto; }
svg text { font: 12px system-ui, sans-serif; fill: var(--ink); }
svg .tick { fill: var(--faint); }
svg .name { font-weight: 600; }
.grid { stroke: var(--rule); stroke-width: 1; }
.axis { stroke: var(--faint); stroke-width: 1; }
.curve { fill: none; stroke-width: 1.7; stroke-linejoin: round; }
.leader { fill: none; stroke: var(--faint); stroke-width: .7; stroke-dasharray: 2 2; }
.f0 { --colour: var(--f0); } .f1 { --colour: var(--f1); }
.f2 { --colour: var(--f2); } .f3 { --colour: var(--f3); }
.curve { stroke: var(--colour); }
.dot, .bar { fill: var(--colour); }
svg .label { fill: var(--colour); }
.point { fill: var(--colour); stroke: var(--colour); stroke-width: 2; }
.point.hollow { fill: var(--page); }
svg .number { fill: var(--on); font-weight: 700; font-size: 11px; pointer-events: none; }
svg .number.hollow { fill: var(--ink); }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; padding: 0;
  margin: .2rem 0 .6rem; font-size: .9rem; }
.legend svg { width: 1em; height: 1em; vertical-align: -.1em; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .5rem; border-bottom: 1px solid var(--rule); text-align: right;
  vertical-align: top; white-space: nowrap; }
thead th { color: var(--faint); font-weight: 600; }
th[scope=row], thead th:nth-child(2), td:nth-child(3), thead th:nth-child(3) { text-align: left; }
th[scope=row] { font-weight: 600; }
th small { display: block; max-width: 14rem; white-space: normal; font-weight: 400;
  color: var(--faint); overflow-wrap: anywhere; }
.swatch { display: inline-block; width: .7em; height: .7em; border-radius: 2px;
  margin-right: .45em; background: var(--colour); }
details { margin-top: .8rem; font-size: .9rem; }
dt { font-weight: 600; } dd { margin: 0 0 .3rem 1rem; color: var(--faint); }
"""
