// Checks the types of the dashboard, where its packages are installed: those of its queries are made of the SDL.
import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as path from 'node:path';

const DASHBOARD = path.resolve(import.meta.dirname, '../../clients/dashboard');

if (!fs.existsSync(path.join(DASHBOARD, 'node_modules/vite')))
  process.stderr.write('clients/dashboard is not checked: run npm run install:dashboard\n');
else process.exitCode = check();

function check() {
  return spawnSync('npm', ['run', '--silent', 'check'], { cwd: DASHBOARD, stdio: 'inherit' }).status ?? 1;
}
