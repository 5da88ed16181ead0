// Checks the types of the dashboard, where its packages are installed: those of its queries are made of the SDL.
import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as path from 'node:path';

const DASHBOARD = path.resolve(import.meta.dirname, '../../clients/dashboard');
const TSC = path.resolve(import.meta.dirname, '../../node_modules/typescript/bin/tsc');

if (!fs.existsSync(path.join(DASHBOARD, 'node_modules/vite')))
  process.stderr.write('clients/dashboard is not checked: run npm run install:dashboard\n');
else process.exitCode = check();

// The generator needs a compiler of its own, of version 5; the types are checked by that of the project.
function check() {
  const options = { cwd: DASHBOARD, stdio: ['ignore', 'ignore', 'inherit'] };
  const generated = spawnSync('npm', ['run', '--silent', 'types'], options).status ?? 1;
  return generated || (spawnSync(process.execPath, [TSC, '-p', '.'], { ...options, stdio: 'inherit' }).status ?? 1);
}
