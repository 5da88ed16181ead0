// The command line of a checkout: npm run svc -- <command>. Its packages are installed by its first use.
//   node tools/scripts/svc.mjs --check-types    checks its types, where its packages are installed
import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { pathToFileURL } from 'node:url';

const CLI = path.resolve(import.meta.dirname, '../../clients/cli');
const BINARY = path.join(CLI, 'dist/svc.cjs');
const isInstalled = fs.existsSync(path.join(CLI, 'node_modules/esbuild'));

if (process.argv[2] === '--check-types') {
  if (!isInstalled) process.stderr.write('clients/cli is not checked: run npm run install:cli\n');
  else run(process.execPath, path.join(CLI, 'node_modules/typescript/bin/tsc'), '-p', path.join(CLI, 'tsconfig.json'));
} else {
  if (!isInstalled) run('npm', 'ci', '--prefix', CLI, '--no-audit', '--no-fund');
  run(process.execPath, path.join(CLI, 'build.mjs'), '--if-stale');
  // npm runs scripts at the top of the package; the person is in another folder perhaps.
  process.chdir(process.env.INIT_CWD ?? process.cwd());
  process.argv.splice(1, 1, BINARY);
  await import(pathToFileURL(BINARY).href);
}

/** Standard output is for the data of the command. */
function run(program, ...args) {
  const { status, error } = spawnSync(program, args, { stdio: ['ignore', 2, 2] });
  if (error) process.stderr.write(`${program}: ${error.message}\n`);
  if (status !== 0) process.exit(1);
}
