// Packages that only the benchmark needs. They are no dependencies of the product: tools/development/bench has a
// separate package.json.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

const FOLDER = path.resolve(__dirname, '../../../../tools/development/bench');

/** A package of tools/development/bench. */
export const loadPackage = createRequire(path.join(FOLDER, 'package.json'));

/** Installs them where they are missing; says whether they are there. */
export function installPackages(say: (line: string) => void): boolean {
  if (isThere()) return true;
  say('Installing what the API is compared with (once): npm ci --prefix tools/development/bench --ignore-scripts');
  const { status } = spawnSync(
    'npm',
    ['ci', '--prefix', FOLDER, '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  );
  return status === 0 && isThere();
}

const isThere = (): boolean =>
  ['fastify', 'postgraphile'].every((name) => existsSync(path.join(FOLDER, 'node_modules', name)));

/** The Node.js that targets bind on; null where there is none for this machine. */
export function bindingNode(): string | null {
  const file = path.join(FOLDER, 'node_modules', `node-${process.platform}-${process.arch}`, 'bin/node');
  return existsSync(file) ? file : null;
}
