/** Patches of a picture: which key lies where, and what weight they have. */
import type { Picture } from "./types";

/** The key whose patch is at a place of the picture, given as shares of its width and height; -1 outside of it. */
export function patchAt(picture: Picture, x: number, y: number): number {
  if (!(x >= 0 && x < 1 && y >= 0 && y < 1)) return -1;
  return keyAt(picture, Math.floor(y * picture.rows), Math.floor(x * picture.columns));
}

/** The key of a row and column of patches; -1 where there is none. */
export function keyAt(picture: Picture, row: number, column: number): number {
  return picture.keyRow.findIndex((each, key) => each === row && picture.keyColumn[key] === column);
}

/** The rectangle of a key's patch in a picture that is drawn `width` × `height`; null for a key that is no patch. */
export function patchBox(picture: Picture, key: number, width: number, height: number): [number, number, number, number] | null {
  const [row, column] = [picture.keyRow[key] ?? -1, picture.keyColumn[key] ?? -1];
  if (row < 0 || column < 0) return null;
  const [w, h] = [width / picture.columns, height / picture.rows];
  return [column * w, row * h, w, h];
}

/** The key of the patch that is so many rows and columns away; the same key at an edge or where it is no patch. */
export function neighbor(picture: Picture, key: number, down: number, right: number): number {
  const [row, column] = [picture.keyRow[key] ?? -1, picture.keyColumn[key] ?? -1];
  if (row < 0) return keyAt(picture, 0, 0);
  const next = keyAt(picture, row + down, column + right);
  return next < 0 ? key : next;
}

/** The weight on keys that are no patch, and which these are. */
export function outside(picture: Picture, row: Float32Array): { keys: number[]; mass: number } {
  const keys = picture.keyRow.flatMap((place, key) => (place < 0 ? [key] : []));
  return { keys, mass: keys.reduce((sum, key) => sum + (Number.isNaN(row[key]) ? 0 : row[key]!), 0) };
}
