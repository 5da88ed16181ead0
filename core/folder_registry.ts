// Folders that are registries: what lies in a layer and in the folders of its groups is found, and no list names it.
import { readdirSync, statSync } from 'node:fs';
import path from 'node:path';

/**
 * Files of a layer's folder and of the folders of its groups, one level down.
 * @param layer the folder, absolute
 * @param pattern of the files' names
 * @returns absolute paths, in the order of the names
 */
export function registeredFiles(layer: string, pattern: RegExp): string[] {
  const entries = readdirSync(layer, { withFileTypes: true });
  const folders = [layer, ...entries.filter((entry) => entry.isDirectory()).map(({ name }) => path.join(layer, name))];
  return folders
    .flatMap((folder) => readdirSync(folder).map((name) => path.join(folder, name)))
    .filter((file) => pattern.test(path.basename(file)) && !file.endsWith('.d.ts') && statSync(file).isFile())
    .sort((a, b) => (path.basename(a) < path.basename(b) ? -1 : 1));
}
