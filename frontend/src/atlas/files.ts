/** The files of heads: classic scripts beside the page, because neither fetch nor modules work from a disk. */
import type { HeadFile } from "./types";

const KEPT = 12;

declare global {
  interface Window {
    headscopeAtlas?: (file: HeadFile) => void;
  }
}

/** The name of a head, as in L3H7. */
export function headName(layer: number, head: number): string {
  return `L${layer}H${head}`;
}

/** Loads the file of a head when it is asked for, and keeps the last few. */
export class HeadFiles {
  private readonly kept = new Map<string, Promise<HeadFile>>();
  private readonly arrived = new Map<string, HeadFile>();

  constructor(private readonly folder = "heads") {
    window.headscopeAtlas = (file) => void this.arrived.set(headName(file.layer, file.head), file);
  }

  load(name: string): Promise<HeadFile> {
    const known = this.kept.get(name) ?? this.ask(name);
    this.kept.delete(name);
    this.kept.set(name, known);
    for (const old of [...this.kept.keys()].slice(0, -KEPT)) this.kept.delete(old);
    known.catch(() => this.kept.delete(name));
    return known;
  }

  private ask(name: string): Promise<HeadFile> {
    return new Promise((resolve, reject) => {
      const script = document.createElement("script");
      const path = `${this.folder}/${name}.js`;
      const finish = (): void => {
        script.remove();
        const file = this.arrived.get(name);
        this.arrived.delete(name);
        if (file) resolve(file);
        else reject(new Error(`${path} could not be read. It belongs beside index.html: copy the whole folder.`));
      };
      script.addEventListener("load", finish);
      script.addEventListener("error", finish);
      script.src = path;
      document.head.append(script);
    });
  }
}
