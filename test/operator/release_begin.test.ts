/** @user any */
// What comes before a release: the version in all files, its chapter of the changelog, and the release before.
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { chapterOf } from '../../core/releases/changelog';
import { version } from '../../package.json';
import { needs } from '../support/runner/programs';
import { ROOT } from '../support/runner/repository';

const run = promisify(execFile);
const { test: it } = needs('git');

let clone: string;
beforeEach(() => (clone = mkdtempSync(path.join(tmpdir(), 'begin-'))));
afterEach(() => rmSync(clone, { recursive: true, force: true }));

const git = (...words: string[]): Promise<string> =>
  run('git', ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.com', ...words], { cwd: clone }).then(({ stdout }) =>
    stdout.trim(),
  );
const tool = (name: string, ...words: string[]): Promise<string> =>
  run(process.execPath, [path.join('tools/release', name), ...words], { cwd: clone }).then(
    ({ stdout }) => stdout,
    ({ stderr }: { stderr: string }) => stderr,
  );
const read = (file: string): string => readFileSync(path.join(clone, file), 'utf8');

it('a version gets its chapter, its number everywhere, and the release before by its tag', async () => {
  await git('clone', '--quiet', '--shared', ROOT, '.');
  expect(await tool('begin.mjs', '99.1.0')).toMatch(/^begin: CHANGELOG.md has no chapter "## \[Unreleased\]"/);
  const unreleased = '## [Unreleased]\n\n### Fixed\n\n- Something.\n\n';
  writeFileSync(path.join(clone, 'CHANGELOG.md'), read('CHANGELOG.md').replace(/^## /m, `${unreleased}## `));
  await git('commit', '--quiet', '--all', '--message=Mend something');
  expect(await tool('begin.mjs', 'next')).toMatch(/^begin: name the version/);
  expect(await tool('begin.mjs', '99.1.0')).toBe(
    `begin: the release before has no tag: git tag v${version} <its commit>\n`,
  );
  expect(await git('status', '--porcelain')).toBe('');
  await git('tag', '--force', `v${version}`);
  const commit = await git('rev-parse', 'HEAD');
  expect(await tool('begin.mjs', '99.1.0')).toContain('git tag v99.1.0');
  expect(chapterOf(read('CHANGELOG.md'), '99.1.0')).toBe('### Fixed\n\n- Something.');
  expect(chapterOf(read('CHANGELOG.md'), 'Unreleased')).toBeNull();
  expect(JSON.parse(read('tools/release/before.json'))).toEqual({ version, commit });
  for (const folder of ['', 'clients/cli', 'clients/dashboard']) {
    expect(JSON.parse(read(path.join(folder, 'package.json'))).version).toBe('99.1.0');
    expect(JSON.parse(read('package-lock.json')).packages[folder].version).toBe('99.1.0');
  }
  expect(await git('diff', '--numstat', '--', 'package.json', 'package-lock.json')).toBe(
    '4\t4\tpackage-lock.json\n1\t1\tpackage.json',
  );
});

it('a release of a version without a chapter is refused, and one of a checkout with changes', async () => {
  await git('clone', '--quiet', '--shared', ROOT, '.');
  writeFileSync(path.join(clone, 'CHANGELOG.md'), read('CHANGELOG.md').replace(`## [${version}]`, '## [0.0.1]'));
  expect(await tool('release.mjs')).toContain('release: the checkout has changes: a release is made of a commit');
  await git('commit', '--quiet', '--all', '--message=Lose a chapter');
  expect(await tool('release.mjs')).toContain(`release: CHANGELOG.md has no chapter "## [${version}] - YYYY-MM-DD"`);
});
