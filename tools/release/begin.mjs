// Makes the checkout that of another version: npm run release:begin -- 1.1.0
// What is unreleased becomes its chapter of the changelog, and the release before the one that must run on the schema
// from now on (test/server/release_before.test.ts).
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as path from 'node:path';

const ROOT = path.resolve(import.meta.dirname, '../..');
const PACKAGES = ['', 'clients/cli', 'clients/dashboard'];
const UNRELEASED = /^## \[Unreleased\]$/m;

const [, , version = ''] = process.argv;
if (!/^\d+\.\d+\.\d+$/.test(version)) fail('name the version: npm run release:begin -- 1.1.0');
const changelog = read('CHANGELOG.md');
if (!UNRELEASED.test(changelog)) fail('CHANGELOG.md has no chapter "## [Unreleased]": nothing to release');
if (changelog.includes(`\n## [${version}]`)) fail(`CHANGELOG.md has a chapter of ${version} already`);
const [, before] = /^## \[(\d+\.\d+\.\d+)\]/m.exec(changelog) ?? fail('CHANGELOG.md has no release before');

write('tools/release/before.json', `${JSON.stringify({ version: before, commit: commitOf(before) }, null, 2)}\n`);
for (const folder of PACKAGES) {
  const file = path.join(folder, 'package.json');
  write(file, read(file).replace(/"version": "[^"]*"/, `"version": "${version}"`));
}
const lock = JSON.parse(read('package-lock.json'));
for (const one of [lock, ...PACKAGES.map((folder) => lock.packages[folder])]) one.version = version;
write('package-lock.json', `${JSON.stringify(lock, null, 2)}\n`);
write('CHANGELOG.md', changelog.replace(UNRELEASED, `## [${version}] - ${new Date().toISOString().slice(0, 10)}`));
console.log(`git commit --all --message 'Release ${version}' && git tag v${version} && npm run release`);

function commitOf(release) {
  try {
    const words = ['rev-parse', '--verify', '--quiet', `v${release}^{commit}`];
    return execFileSync('git', words, { cwd: ROOT, encoding: 'utf8' }).trim();
  } catch {
    return fail(`the release before has no tag: git tag v${release} <its commit>`);
  }
}

function read(file) {
  return fs.readFileSync(path.join(ROOT, file), 'utf8');
}

function write(file, text) {
  fs.writeFileSync(path.join(ROOT, file), text);
}

function fail(message) {
  console.error(`begin: ${message}`);
  process.exit(1);
}
