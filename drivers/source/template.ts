// Shipped templates: folders of templates/ in the root of the package, which is not copied to dist/.
import { existsSync } from 'node:fs';
import { cp, mkdir, readdir, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { SourceError } from '../source';
import type { DriverContext } from '../../core/driver';

/** Writes the files of a template; existing files in the directory are removed. @throws SourceError no_repository */
export async function exportTemplate(name: string, directory: string, _ctx: DriverContext): Promise<void> {
  const from = path.join(shippedTemplates(), name);
  const known =
    /^[a-z][a-z0-9-]*$/.test(name) &&
    (await stat(from).then(
      (found) => found.isDirectory(),
      () => false,
    ));
  if (!known) throw new SourceError('no_repository', `This platform has no template ${name}.`);
  await mkdir(directory, { recursive: true });
  await Promise.all(
    (await readdir(directory)).map((entry) => rm(path.join(directory, entry), { recursive: true, force: true })),
  );
  await cp(from, directory, { recursive: true });
}

/** The folder of the templates, when run from sources or from dist/. */
function shippedTemplates(): string {
  let folder = __dirname;
  while (!existsSync(path.join(folder, 'templates')) && folder !== path.dirname(folder)) folder = path.dirname(folder);
  return path.join(folder, 'templates');
}
