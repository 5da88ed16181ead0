// How the operator calls commands of an installation: a release has no npm scripts, a checkout no command `platform`.
import { existsSync } from 'node:fs';
import path from 'node:path';

/** How to install optional programs. */
export function setupCommand(): string {
  return isCheckout() ? 'npm run setup' : 'platform programs';
}

/** How to call the operator's command. */
export function operatorCommand(): string {
  return isCheckout() ? 'npm run cli --' : 'platform';
}

/** It alone has the sources of the compiler. */
function isCheckout(): boolean {
  const folders = [path.join(__dirname, '../..'), path.join(__dirname, '../../..')];
  return folders.some((folder) => existsSync(path.join(folder, 'tsconfig.json')));
}
