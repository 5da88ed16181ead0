// What `npm version` calls when it has raised the version: the changelog gets a chapter for it, and the release before
// becomes the one that must run on the schema from now on (test/server/release_before.test.ts).
//   npm version 1.1.0 --workspaces --include-workspace-root
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as path from 'node:path';

const ROOT = path.resolve(import.meta.dirname, '../..');
const CHANGELOG = path.join(ROOT, 'CHANGELOG.md');
const UNRELEASED = /^## \[Unreleased\]$/m;

const changelog = fs.readFileSync(CHANGELOG, 'utf8');
const { version } = JSON.parse(fs.readFileSync(path.join(ROOT, 'package.json'), 'utf8'));
const [, before] = /^## \[(\d+\.\d+\.\d+)\]/m.exec(changelog) ?? [];
if (!UNRELEASED.test(changelog)) fail('CHANGELOG.md has no chapter "## [Unreleased]": nothing to release');
if (changelog.includes(`## [${version}]`)) fail(`CHANGELOG.md has a chapter of ${version} already`);

if (before) {
  const release = `${JSON.stringify({ version: before, commit: commitOf(before) }, null, 2)}\n`;
  fs.writeFileSync(path.join(ROOT, 'tools/release/before.json'), release);
}
const today = new Date().toISOString().slice(0, 10);
fs.writeFileSync(CHANGELOG, changelog.replace(UNRELEASED, `## [${version}] - ${today}`));

function commitOf(release) {
  try {
    return execFileSync('git', ['rev-parse', '--verify', '--quiet', `v${release}^{commit}`], {
      cwd: ROOT,
      encoding: 'utf8',
    }).trim();
  } catch {
    return fail(`the release before has no tag: git tag v${release} <its commit>`);
  }
}

function fail(message) {
  console.error(`begin: ${message}`);
  process.exit(1);
}
