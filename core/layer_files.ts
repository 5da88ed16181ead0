// Files of a layer that are found by their names, so that no list of them has to be kept.
import { readdirSync, statSync } from 'node:fs';
import path from 'node:path';

/**
 * Files in a layer's folder and in the folders of its groups, one level down.
 * @param layer absolute path of the folder
 * @param pattern of the file names
 * @returns absolute paths, sorted by name
 */
export function layerFiles(layer: string, pattern: RegExp): string[] {
  const entries = readdirSync(layer, { withFileTypes: true });
  const folders = [layer, ...entries.filter((entry) => entry.isDirectory()).map(({ name }) => path.join(layer, name))];
  return folders
    .flatMap((folder) => readdirSync(folder).map((name) => path.join(folder, name)))
    .filter((file) => pattern.test(path.basename(file)) && !file.endsWith('.d.ts') && statSync(file).isFile())
    .sort((a, b) => (path.basename(a) < path.basename(b) ? -1 : 1));
}
