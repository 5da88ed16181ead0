// How the operator installs optional programs: a release has no npm scripts, a checkout no command `platform`.
import { existsSync } from 'node:fs';
import path from 'node:path';

/** `platform programs` in a release; `npm run setup` in a checkout, which alone has the sources of the compiler. */
export function setupCommand(): string {
  const folders = [path.join(__dirname, '../..'), path.join(__dirname, '../../..')];
  return folders.some((folder) => existsSync(path.join(folder, 'tsconfig.json')))
    ? 'npm run setup'
    : 'platform programs';
}
