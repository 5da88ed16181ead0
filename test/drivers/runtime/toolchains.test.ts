// Which directories a sandbox shows for languages that are installed outside of /usr.
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { languagePaths, toolchains } from '../../../drivers/runtime/toolchains';

const home = mkdtempSync(path.join(tmpdir(), 'toolchains-'));
const inHome = (name: string): string => path.join(home, name);

function program(name: string): void {
  mkdirSync(path.dirname(inHome(name)), { recursive: true });
  writeFileSync(inHome(name), '#!/bin/sh\n');
  chmodSync(inHome(name), 0o755);
}

beforeAll(() => {
  program('.pyenv/shims/python3');
  program('.pyenv/versions/3.11.7/bin/python3');
  program('.local/bin/poetry');
  program('tools/go/bin/go');
  mkdirSync(inHome('bin'));
  symlinkSync(inHome('tools/go/bin/go'), inHome('bin/go'));
});
afterAll(() => rmSync(home, { recursive: true }));
beforeEach(() => {
  process.env.HOME = home;
});

const search = (...names: string[]): void => {
  process.env.PATH = [...names.map(inHome), '/usr/bin'].join(':');
};
const found = (hidden = '/nowhere'): string[] => toolchains(hidden).filter((one) => one.startsWith(home));

test('of a version manager all is shown: its shims lead to its versions', () => {
  search('.pyenv/shims');
  expect(found()).toEqual([inHome('.pyenv')]);
  search('.pyenv/versions/3.11.7/bin');
  expect(found()).toEqual([inHome('.pyenv')]);
  expect(languagePaths(found(), () => true).split(':')[0]).toBe(inHome('.pyenv/versions/3.11.7/bin'));
});

test('of a home directory no more than the programs is shown, and what a link leads to', () => {
  search('bin');
  expect(found().sort()).toEqual([inHome('bin'), inHome('tools/go')]);
});

test('a directory of which a part is hidden is not shown', () => {
  search('.pyenv/shims', 'bin');
  expect(found(inHome('.pyenv/data'))).not.toContain(inHome('.pyenv'));
});

test('what users of tenants cannot reach is not on their PATH', () => {
  search('.pyenv/shims');
  expect(languagePaths(found(), () => false)).not.toContain(home);
});
