// Development packages of Node.js that the processes need are not removed after the build.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';

const program = path.join(__dirname, '../../../drivers/builder/development_check.js');

/** What it says; '' where the packages may be removed. */
function check(command: string, files: Record<string, string>): string {
  const directory = mkdtempSync(path.join(os.tmpdir(), 'development-'));
  const manifest = {
    main: 'lib/main.js',
    scripts: { start: 'node dist/server' },
    dependencies: { hono: '1', both: '1' },
    devDependencies: { express: '1', both: '1', '@scope/log': '1', vite: '1' },
  };
  try {
    for (const [name, text] of Object.entries({ 'package.json': JSON.stringify(manifest), ...files })) {
      mkdirSync(path.dirname(path.join(directory, name)), { recursive: true });
      writeFileSync(path.join(directory, name), text);
    }
    const ran = spawnSync('node', [program, JSON.stringify([command])], { cwd: directory, encoding: 'utf8' });
    expect([ran.stderr, ran.status]).toEqual(['', ran.stdout === '' ? 0 : 1]);
    return ran.stdout.trim();
  } finally {
    rmSync(directory, { recursive: true });
  }
}

const stays = (file: string, name: string): string =>
  `The development packages stay, because ${file} imports ${name}, which is one of them.`;

test.each([
  ['node server.js', { 'server.js': "const e = require('express')" }, stays('server.js', 'express')],
  [
    'npm start',
    { 'dist/server.js': 'import "./a/b.js"', 'dist/a/b.js': 'import x from "@scope/log/x"' },
    stays('dist/a/b.js', '@scope/log'),
  ],
  [
    'node .',
    { 'lib/main.js': "require('./routes')", 'lib/routes/index.js': "await import('express')" },
    stays('lib/routes/index.js', 'express'),
  ],
  [
    'node --watch server.ts',
    { 'server.ts': "import { a } from './b.ts'", 'b.ts': "export * from 'express'" },
    stays('b.ts', 'express'),
  ],
  ['vite preview', {}, 'The development packages stay, because the processes use vite of vite.'],
])('they stay where %s needs one: %j', (command, files, words) => {
  expect(check(command, files as Record<string, string>)).toBe(words);
});

test.each([
  ['node server.js', { 'server.js': "require('hono'); require('node:fs'); require('both'); require('expressive')" }],
  ['node server.js', { 'server.js': 'require("./a")', 'a.js': 'require("./server")', 'build.js': "require('vite')" }],
  ['node server.ts', { 'server.ts': "import type { X } from 'express'\n" }],
])('they go where %s needs none: %j', (command, files) => {
  expect(check(command, files as Record<string, string>)).toBe('');
});
