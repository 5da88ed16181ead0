// Where the package's own files are, whether it runs from its sources or from dist/.
import { existsSync } from 'node:fs';
import path from 'node:path';

/** The folder of the templates, below the folder that holds package.json. */
export function shippedTemplates(): string {
  let folder = __dirname;
  while (!existsSync(path.join(folder, 'package.json')) && folder !== path.dirname(folder)) folder = path.dirname(folder);
  return path.join(folder, 'templates');
}
