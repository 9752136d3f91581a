// Pictures of figures: curves over sizes, both axes logarithmic, in the colors of the page around them.

/** One curve; each is told from the others by its color and by its mark. */
export interface Line {
  readonly name: string;
  readonly points: readonly { readonly x: number; readonly y: number }[];
}

export interface Plot {
  /** Of the file, and of what is named in it. */
  readonly name: string;
  readonly title: string;
  /** The same in words, for whoever does not see it. */
  readonly description: string;
  readonly xLabel: string;
  readonly yLabel: string;
  /** The numbers below the axis; powers of ten when absent. */
  readonly xTicks?: readonly number[];
  readonly xText: (value: number) => string;
  readonly yText: (value: number) => string;
  readonly lines: readonly Line[];
}

const WIDTH = 400;
const LEFT = 62;
const RIGHT = 384;
const LEGEND_TOP = 42;
const LEGEND_STEP = 18;
const HEIGHT = 210;
const BELOW = 46;
const COLORS = ['#4c7de0', '#2fa36b', '#d9644a', '#a46bd6', '#b8860b'];
const MARKS = ['M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z', 'M-4-4h8v8h-8z', 'M0-5l5 5-5 5-5-5z'];
const MORE_MARKS = ['M0-5l5 9h-10z', 'M-5-4h10l-5 9z'];

/** An SVG of its own. */
export function plotSvg(plot: Plot): string {
  const { name, title, description, lines } = plot;
  const top = LEGEND_TOP + lines.length * LEGEND_STEP + 12;
  const bottom = top + HEIGHT;
  const points = lines.flatMap((line) => line.points);
  const xTicks = plot.xTicks ?? decades(points.map(({ x }) => x));
  const yTicks = decades(points.map(({ y }) => y));
  const toX = scale(xTicks, LEFT + 10, RIGHT - 6);
  const toY = scale(yTicks, bottom, top);
  const grid = [
    ...yTicks.map((tick) => `<path class="grid" d="M${LEFT} ${toY(tick)}H${RIGHT}"/>`),
    ...xTicks.map((tick) => `<path class="grid" d="M${toX(tick)} ${top}V${bottom}"/>`),
  ];
  const labels = [
    ...yTicks.map((tick) => label(LEFT - 6, toY(tick) + 4, 'end', plot.yText(tick))),
    ...xTicks.map((tick) => label(toX(tick), bottom + 17, 'middle', plot.xText(tick))),
    label((LEFT + RIGHT) / 2, bottom + 37, 'middle', plot.xLabel),
    label(8, LEGEND_TOP - 6, 'start', plot.yLabel),
    `<text class="strong" x="8" y="15">${escaped(title)}</text>`,
  ];
  const curves = lines.flatMap((line, index) => {
    const places = line.points.map(({ x, y }) => ({ x: toX(x), y: toY(y) }));
    const path = places.map(({ x, y }, i) => `${i === 0 ? 'M' : 'L'}${x} ${y}`).join('');
    return [
      `<path class="curve color-${index}" d="${path}"/>`,
      ...places.map(({ x, y }) => mark(index, x, y)),
      mark(index, 16, LEGEND_TOP + 12 + index * LEGEND_STEP - 4),
      label(28, LEGEND_TOP + 12 + index * LEGEND_STEP, 'start', line.name),
    ];
  });
  const style = [
    '.picture-ink { color: #213547; font: 12.5px system-ui, sans-serif; }',
    '.picture-ink text { fill: currentColor; }',
    '.picture-ink .strong { font-weight: 600; }',
    '.picture-ink .grid { fill: none; stroke: currentColor; stroke-opacity: 0.16; }',
    '.picture-ink .curve { fill: none; stroke-width: 1.75; }',
    ...COLORS.map(
      (color, i) =>
        `.picture-ink .color-${i} { stroke: ${color}; } .picture-ink .mark-${i} { fill: ${color}; }`,
    ),
    '@media (prefers-color-scheme: dark) { .picture-ink { color: #dfdfd6; } }',
  ];
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" class="picture-ink" viewBox="0 0 ${WIDTH} ${bottom + BELOW}" role="img" aria-labelledby="${name}-title ${name}-desc">`,
    `<title id="${name}-title">${escaped(title)}</title>`,
    `<desc id="${name}-desc">${escaped(description)}</desc>`,
    '<style>',
    ...style.map((rule) => `  ${rule}`),
    '</style>',
    ...grid,
    ...labels,
    ...curves,
  ].join('\n  ')}\n</svg>\n`;
}

/** The powers of ten around all values. */
function decades(values: readonly number[]): number[] {
  const first = Math.floor(Math.log10(Math.min(...values)) + 1e-9);
  const last = Math.max(first + 1, Math.ceil(Math.log10(Math.max(...values)) - 1e-9));
  return Array.from({ length: last - first + 1 }, (_, i) => 10 ** (first + i));
}

function scale(ticks: readonly number[], from: number, to: number): (value: number) => number {
  const [low = 1, high = 10] = [ticks[0], ticks.at(-1)];
  const share = (value: number) => Math.log(value / low) / Math.log(high / low);
  return (value) => Number((from + share(value) * (to - from)).toFixed(1));
}

function mark(index: number, x: number, y: number): string {
  const shape = [...MARKS, ...MORE_MARKS][index] ?? '';
  return `<path class="mark-${index}" transform="translate(${x} ${y})" d="${shape}"/>`;
}

function label(x: number, y: number, anchor: 'start' | 'middle' | 'end', text: string): string {
  return `<text x="${x}" y="${Number(y.toFixed(1))}" text-anchor="${anchor}">${escaped(text)}</text>`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
