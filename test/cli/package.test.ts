/** @user any */
// The package as it is published: it installs without a network, and runs.
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { buildCli } from '../support/cli/svc';
import { ROOT } from '../support/runner/repository';
import { needs } from '../support/runner/programs';

const BYTES_MAX = 2 * 1024 * 1024;
let directory: string;
beforeAll(() => {
  buildCli();
  directory = fs.mkdtempSync(path.join(os.tmpdir(), 'svc-package-'));
});
afterAll(() => fs.rmSync(directory, { recursive: true, force: true }));

needs('npm').test('is small, has no dependency and no script of an installation, and installs a command', () => {
  const env = { PATH: process.env.PATH, HOME: directory, npm_config_cache: path.join(directory, 'cache') };
  // Built above: another test may run the file meanwhile.
  const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', directory];
  const cwd = path.join(ROOT, 'clients/cli');
  const [packed] = JSON.parse(execFileSync('npm', args, { cwd, env, stdio: ['ignore', 'pipe', 'ignore'] }).toString());
  expect(packed.unpackedSize).toBeLessThan(BYTES_MAX);
  expect(packed.files.map((file: { path: string }) => file.path).sort()).toEqual(
    ['LICENSE', 'NOTICE', 'README.md', 'dist/svc.cjs', 'package.json'].sort(),
  );
  const place = path.join(directory, 'installed');
  const install = [
    'install',
    '--global',
    '--prefix',
    place,
    '--offline',
    '--no-audit',
    '--no-fund',
    '--no-update-notifier',
  ];
  execFileSync('npm', [...install, path.join(directory, packed.filename)], { cwd: directory, env, stdio: 'ignore' });
  const command = path.join(place, 'bin/svc');
  expect(execFileSync(command, ['--version'], { env }).toString()).toBe(`${packed.version}\n`);
  expect(execFileSync(command, ['api', 'getVolume', '--help'], { env }).toString()).toContain('GET /v2/volumes/{id}');
  expect(fs.readdirSync(path.join(place, 'lib/node_modules'))).toEqual(['platform-cli']);
  expect(fs.existsSync(path.join(place, 'lib/node_modules/platform-cli/node_modules'))).toBe(false);
  const { dependencies, scripts } = JSON.parse(
    fs.readFileSync(path.join(place, 'lib/node_modules/platform-cli/package.json'), 'utf8'),
  );
  expect([dependencies, Object.keys(scripts).filter((name) => /install|^prepare$/.test(name))]).toEqual([
    undefined,
    [],
  ]);
});
