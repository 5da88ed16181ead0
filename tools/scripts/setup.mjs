// Installs, with the package manager of this machine, the optional programs that it lacks, as listed in
// core/catalog/optional_programs.json.
//   npm run setup              shows what each is for and the command, and asks before it runs
//   npm run setup -- --yes     does not ask
//   npm run setup -- --tests   also what only the tests use
//   npm run setup -- --list    shows, and installs nothing
import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { createInterface } from 'node:readline/promises';

const FLAGS = ['--yes', '--tests', '--list'];
const MANAGERS = {
  apt: { program: 'apt-get', install: ['apt-get', 'install', '-y', '--no-install-recommends'] },
  dnf: { program: 'dnf', install: ['dnf', 'install', '-y'] },
  apk: { program: 'apk', install: ['apk', 'add'] },
  pacman: { program: 'pacman', install: ['pacman', '-S', '--needed', '--noconfirm'] },
};
const PLACES = [...(process.env.PATH ?? '').split(':'), '/usr/local/sbin', '/usr/sbin', '/sbin'].filter(Boolean);
const POLICY = '/usr/sbin/policy-rc.d';

const flags = process.argv.slice(2);
const unknown = flags.find((flag) => !FLAGS.includes(flag));
if (unknown !== undefined) fail(`unknown argument ${unknown}; there are ${FLAGS.join(', ')}`);
process.exitCode = await setUp();

async function setUp() {
  const missing = listed().filter(isMissing);
  if (missing.length === 0) return say('Nothing is missing.');
  for (const entry of missing) say(`  ${entry.package.padEnd(18)} ${entry.without ?? `Tests use it: ${entry.tests}.`}`);
  const [name, manager] = Object.entries(MANAGERS).find(([, { program }]) => find(program)) ?? [];
  if (manager === undefined)
    return say('\nNo package manager that is known was found. Install these packages by hand.', 1);
  const packages = missing.flatMap((entry) => (entry.elsewhere?.[name] ?? entry.package).split(' '));
  const elevate = process.getuid?.() === 0 ? [] : ['sudo'];
  const command = [...elevate, ...manager.install, ...packages];
  say(`\n  ${command.join(' ')}\n`);
  if (flags.includes('--list')) return 0;
  if (elevate.length && !find('sudo')) return say('This needs the rights of root: run the command as root.', 1);
  if (!flags.includes('--yes') && !(await isWanted())) return say('Nothing was installed.');
  return install(name, elevate, [...elevate, ...manager.install], packages);
}

function listed() {
  const file = path.resolve(import.meta.dirname, '../../core/catalog/optional_programs.json');
  const user = process.getuid?.() === 0 ? 'ordinary' : 'root';
  const all = JSON.parse(fs.readFileSync(file, 'utf8'));
  return all.filter((entry) => flags.includes('--tests') || (entry.without !== undefined && entry.user !== user));
}

function isMissing({ package: name, programs }) {
  // Debian's Python comes without what makes virtual environments.
  if (name === 'python3-venv' && find('python3'))
    return spawnSync('python3', ['-c', 'import venv, ensurepip']).status !== 0;
  // Images of the tests hold nothing but this program, so one that is linked with libraries is of no use.
  if (name === 'busybox-static' && find('busybox'))
    return spawnSync('sh', ['-c', 'head -c 4096 "$(command -v busybox)" | grep -q ld-linux']).status === 0;
  return !programs.some(find);
}

function find(program) {
  return [...PLACES, ...postgresqlPlaces()].some((place) => {
    try {
      fs.accessSync(path.join(place, program), fs.constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

function postgresqlPlaces() {
  const root = '/usr/lib/postgresql';
  return fs.existsSync(root) ? fs.readdirSync(root).map((major) => path.join(root, major, 'bin')) : [];
}

async function isWanted() {
  if (!process.stdin.isTTY) fail('this is no terminal, so it cannot ask: run it with --yes');
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  const answer = await terminal.question('Run this command? [y/N] ');
  terminal.close();
  return /^y(es)?$/i.test(answer.trim());
}

/** Answers with an exit code. A package that cannot be had does not keep the others away. */
function install(manager, elevate, command, packages) {
  const servers = manager === 'apt' && elevate.length === 0 ? keepServersStopped() : () => {};
  try {
    if (manager === 'apt') run([...elevate, 'apt-get', 'update', '-q']);
    if (run([...command, ...packages])) return 0;
    const failed = packages.filter((name) => !run([...command, name]));
    return failed.length ? say(`Could not be installed: ${failed.join(' ')}`, 1) : 0;
  } finally {
    servers();
  }
}

// The packages of servers would start them, on the ports that they have by default (invoke-rc.d(8)).
function keepServersStopped() {
  if (fs.existsSync(POLICY)) return () => {};
  fs.writeFileSync(POLICY, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  return () => fs.rmSync(POLICY, { force: true });
}

function run([program, ...args]) {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  return spawnSync(program, args, { stdio: ['ignore', 'inherit', 'inherit'], env }).status === 0;
}

function say(text, code = 0) {
  process.stdout.write(`${text}\n`);
  return code;
}

function fail(text) {
  process.stderr.write(`npm run setup: ${text}\n`);
  process.exit(2);
}
