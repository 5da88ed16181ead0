// Location of the package's own files, when run from sources or from dist/.
import { existsSync } from 'node:fs';
import path from 'node:path';

/** The folder of the templates in the root of the package, which is not copied to dist/. */
export function shippedTemplates(): string {
  let folder = __dirname;
  while (!existsSync(path.join(folder, 'templates')) && folder !== path.dirname(folder)) folder = path.dirname(folder);
  return path.join(folder, 'templates');
}
