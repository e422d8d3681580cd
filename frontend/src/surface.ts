/** One set of shapes for the canvas and for SVG: a picture is painted once, and both are the same. */
import { fillMasked, FONT } from "./canvas";
import type { ColorTable, Palette } from "./colors";
import { Svg } from "./svg";

export interface TextLook {
  size?: number;
  color: string;
  align?: "left" | "center" | "right";
  bold?: boolean;
  /** Turned by 90° to read upwards, around its place. */
  upwards?: boolean;
}

export interface LineLook {
  color: string;
  width?: number;
  alpha?: number;
  dash?: boolean;
}

/** What pictures are painted on. Texts are centered on their y. */
export interface Surface {
  rect(x: number, y: number, width: number, height: number, fill: string): void;
  frame(x: number, y: number, width: number, height: number, color: string, line?: number): void;
  line(x1: number, y1: number, x2: number, y2: number, look: LineLook): void;
  dot(x: number, y: number, radius: number, fill: string): void;
  text(x: number, y: number, content: string, look: TextLook): void;
  /** The hatching of what has no value. */
  masked(x: number, y: number, width: number, height: number): void;
  /** A picture of few pixels, drawn sharp. */
  image(x: number, y: number, width: number, height: number, picture: HTMLCanvasElement): void;
}

const BASELINE = 0.35; // of the font size, from the middle of a text down to its baseline

/** Paints on a canvas. */
export class CanvasSurface implements Surface {
  constructor(private readonly context: CanvasRenderingContext2D, private readonly palette: Palette) {}

  rect(x: number, y: number, width: number, height: number, fill: string): void {
    this.context.fillStyle = fill;
    this.context.fillRect(x, y, width, height);
  }

  frame(x: number, y: number, width: number, height: number, color: string, line = 1): void {
    this.context.strokeStyle = color;
    this.context.lineWidth = line;
    this.context.strokeRect(x, y, width, height);
  }

  line(x1: number, y1: number, x2: number, y2: number, look: LineLook): void {
    const { context } = this;
    context.strokeStyle = look.color;
    context.lineWidth = look.width ?? 1;
    context.globalAlpha = look.alpha ?? 1;
    context.setLineDash(look.dash ? [4, 3] : []);
    context.beginPath();
    context.moveTo(x1, y1);
    context.lineTo(x2, y2);
    context.stroke();
    context.setLineDash([]);
    context.globalAlpha = 1;
  }

  dot(x: number, y: number, radius: number, fill: string): void {
    this.context.fillStyle = fill;
    this.context.beginPath();
    this.context.arc(x, y, radius, 0, 2 * Math.PI);
    this.context.fill();
  }

  text(x: number, y: number, content: string, look: TextLook): void {
    const { context } = this;
    const size = look.size ?? 11;
    context.font = `${look.bold ? "600 " : ""}${size}px ${FONT}`;
    context.fillStyle = look.color;
    context.textAlign = look.align ?? "left";
    context.textBaseline = "alphabetic";
    if (!look.upwards) return context.fillText(content, x, y + BASELINE * size);
    context.save();
    context.translate(x, y);
    context.rotate(-Math.PI / 2);
    context.fillText(content, 0, BASELINE * size);
    context.restore();
  }

  masked(x: number, y: number, width: number, height: number): void {
    fillMasked(this.context, x, y, width, height, this.palette);
  }

  image(x: number, y: number, width: number, height: number, picture: HTMLCanvasElement): void {
    this.context.imageSmoothingEnabled = false;
    this.context.drawImage(picture, x, y, width, height);
  }
}

/** Writes vectors. */
export class SvgSurface implements Surface {
  constructor(private readonly svg: Svg, private readonly palette: Palette) {}

  rect(x: number, y: number, width: number, height: number, fill: string): void {
    this.svg.rect(x, y, width, height, { fill });
  }

  frame(x: number, y: number, width: number, height: number, color: string, line = 1): void {
    this.svg.rect(x, y, width, height, { fill: "none", stroke: color, "stroke-width": line });
  }

  line(x1: number, y1: number, x2: number, y2: number, look: LineLook): void {
    const style: Record<string, string | number> = { stroke: look.color, "stroke-width": look.width ?? 1 };
    if (look.alpha !== undefined) style["stroke-opacity"] = look.alpha;
    if (look.dash) style["stroke-dasharray"] = "4 3";
    this.svg.line(x1, y1, x2, y2, style);
  }

  dot(x: number, y: number, radius: number, fill: string): void {
    this.svg.circle(x, y, radius, { fill });
  }

  text(x: number, y: number, content: string, look: TextLook): void {
    const size = look.size ?? 11;
    const anchor = { left: "start", center: "middle", right: "end" }[look.align ?? "left"];
    const bold: Record<string, string> = look.bold ? { "font-weight": "600" } : {};
    const turn: Record<string, string> = look.upwards ? { transform: `rotate(-90 ${x.toFixed(2)} ${y.toFixed(2)})` } : {};
    this.svg.text(x, y + BASELINE * size, content, { "font-size": size, fill: look.color, "text-anchor": anchor, ...bold, ...turn });
  }

  masked(x: number, y: number, width: number, height: number): void {
    this.svg.rect(x, y, width, height, { fill: this.palette.masked });
    const step = 6;
    for (let at = step - height; at < width; at += step) {
      const [left, right] = [Math.max(0, at), Math.min(width, at + height)];
      this.svg.line(x + left, y + height - (left - at), x + right, y + height - (right - at), { stroke: this.palette.hatch, "stroke-width": 0.75 });
    }
  }

  image(x: number, y: number, width: number, height: number, picture: HTMLCanvasElement): void {
    this.svg.image(x, y, width, height, picture);
  }
}

/** A picture as an SVG document. */
export function toSvg(width: number, height: number, palette: Palette, title: string, paint: (surface: Surface) => void): string {
  const svg = new Svg(width, height, palette.background, title);
  paint(new SvgSurface(svg, palette));
  return svg.toString();
}

/** A horizontal color bar with numbers below its ends, and below its middle where it is symmetric. */
export function paintColorBar(
  surface: Surface,
  [x, y, width, height]: readonly [number, number, number, number],
  table: ColorTable,
  marks: readonly (readonly [number, string])[],
  palette: Palette,
): void {
  const steps = 48;
  for (let i = 0; i < steps; i++) surface.rect(x + (i * width) / steps, y, width / steps + 0.4, height, table.css((i + 0.5) / steps));
  surface.frame(x, y, width, height, palette.faint);
  for (const [share, text] of marks) {
    const align = share === 0 ? "left" : share === 1 ? "right" : "center";
    surface.text(x + share * width, y + height + 9, text, { color: palette.quiet, align });
  }
}
