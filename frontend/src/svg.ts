/** A picture as vectors, written as text. */

type Style = Record<string, string | number>;

/** Collects shapes; `toString` gives a complete SVG document. */
export class Svg {
  private readonly parts: string[] = [];

  constructor(
    readonly width: number,
    readonly height: number,
    private readonly background: string,
    private readonly title = "",
  ) {}

  rect(x: number, y: number, width: number, height: number, style: Style): void {
    this.add("rect", { x, y, width, height, ...style });
  }

  line(x1: number, y1: number, x2: number, y2: number, style: Style): void {
    this.add("line", { x1, y1, x2, y2, ...style });
  }

  path(d: string, style: Style): void {
    this.add("path", { d, ...style });
  }

  circle(cx: number, cy: number, r: number, style: Style): void {
    this.add("circle", { cx, cy, r, ...style });
  }

  text(x: number, y: number, content: string, style: Style = {}): void {
    this.parts.push(`<text ${attributes({ x, y, "font-size": 12, ...style })}>${escape(content)}</text>`);
  }

  /** A picture of few pixels, drawn sharp. */
  image(x: number, y: number, width: number, height: number, canvas: HTMLCanvasElement): void {
    const style = "image-rendering:pixelated";
    this.add("image", { x, y, width, height, style, preserveAspectRatio: "none", href: canvas.toDataURL("image/png") });
  }

  /** A grid of colored cells; cells of the same color in a row are one path, which keeps the file small. */
  cells(x: number, y: number, cell: [number, number], rows: number, columns: number, color: (row: number, column: number) => string | null): void {
    const paths = new Map<string, string[]>();
    for (let row = 0; row < rows; row++)
      for (let column = 0; column < columns; ) {
        const fill = color(row, column);
        let end = column + 1;
        while (end < columns && color(row, end) === fill) end++;
        if (fill) {
          const d = `M${round(x + column * cell[0])} ${round(y + row * cell[1])}h${round((end - column) * cell[0])}v${round(cell[1])}h${round((column - end) * cell[0])}z`;
          const known = paths.get(fill);
          if (known) known.push(d);
          else paths.set(fill, [d]);
        }
        column = end;
      }
    for (const [fill, pieces] of paths) this.path(pieces.join(""), { fill, "shape-rendering": "crispEdges" });
  }

  private add(tag: string, values: Style): void {
    this.parts.push(`<${tag} ${attributes(values)}/>`);
  }

  toString(): string {
    const head = `<svg xmlns="http://www.w3.org/2000/svg" ${attributes({
      width: this.width,
      height: this.height,
      viewBox: `0 0 ${round(this.width)} ${round(this.height)}`,
      "font-family": "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif",
    })}>`;
    const title = this.title ? `<title>${escape(this.title)}</title>` : "";
    const back = `<rect width="100%" height="100%" fill="${this.background}"/>`;
    return `${head}${title}${back}${this.parts.join("")}</svg>\n`;
  }
}

function attributes(values: Style): string {
  return Object.entries(values)
    .map(([name, value]) => `${name}="${typeof value === "number" ? round(value) : escape(value)}"`)
    .join(" ");
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}

/** Text that is safe inside of XML; characters that XML does not allow are left out. */
export function escape(text: string): string {
  const names: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
  return text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "").replace(/[&<>"']/g, (char) => names[char]!);
}
