// Whether a process starts a program of a development dependency, or a file that imports one: these dependencies must
// then be kept. Exits with 0 when they may be removed.
// node - '["npm start", ...]', in the root directory of the source.
'use strict';
const { readFileSync, statSync } = require('node:fs');
const path = require('node:path');

const {
  dependencies = {},
  devDependencies = {},
  scripts = {},
  main,
} = JSON.parse(readFileSync('package.json', 'utf8'));
const FILES_MAX = 2000;
const BYTES_MAX = 4 << 20;
const ENDINGS = ['', '.js', '.mjs', '.cjs', '.ts', '.mts', '/index.js', '/index.mjs', '/index.cjs', '/index.ts'];
const IMPORT = /(?:\bfrom\s*|\bimport\s*(?:\(\s*)?|\brequire\s*\(\s*)(["'])([^"'\n]+)\1/g;
/** @type {Set<string>} */
const words = new Set();

/** @param {string} command */
function collect(command) {
  for (const word of command.split(/[\s"'`=;&|()]+/)) {
    if (word === '' || words.has(word)) continue;
    words.add(word);
    for (const name of [`pre${word}`, word, `post${word}`])
      if (typeof scripts[name] === 'string') collect(scripts[name]);
  }
}

/** @param {string} name */
function programsOf(name) {
  try {
    const { bin = {} } = JSON.parse(readFileSync(`node_modules/${name}/package.json`, 'utf8'));
    return typeof bin === 'string' ? [name.split('/').pop()] : Object.keys(bin);
  } catch {
    return [];
  }
}

/** @param {string} file */
function find(file) {
  return ENDINGS.map((ending) => file + ending).find((one) => {
    const stats = statSync(one, { throwIfNoEntry: false });
    return stats !== undefined && stats.isFile() && stats.size <= BYTES_MAX && /\.[cm]?[jt]s$/.test(one);
  });
}

/**
 * The first file that imports a package that is for development alone.
 * @returns {{ file: string, name: string } | null}
 */
function findImport() {
  const queue = [...words].map((word) => (word === '.' ? (main ?? 'index') : word));
  const seen = new Set();
  for (let next = queue.shift(); next !== undefined && seen.size < FILES_MAX; next = queue.shift()) {
    const file = find(next);
    if (file === undefined || seen.has(file) || file.includes('node_modules')) continue;
    seen.add(file);
    for (const [, , target = ''] of readFileSync(file, 'utf8')
      .replace(/^import type .*$/gm, '')
      .matchAll(IMPORT)) {
      if (/^\.\.?(?:\/|$)/.test(target)) queue.push(path.join(path.dirname(file), target).replace(/\/$/, ''));
      const name = target.split('/', target.startsWith('@') ? 2 : 1).join('/');
      if (developed.includes(name)) return { file, name };
    }
  }
  return null;
}

JSON.parse(process.argv[2] ?? '').forEach(collect);
const developed = Object.keys(devDependencies).filter((one) => !(one in dependencies));
for (const name of developed) {
  const programs = programsOf(name);
  const used = [...words].find((word) => programs.includes(word) || word === name || word.startsWith(`${name}/`));
  if (used === undefined) continue;
  console.log(`The development packages stay, because the processes use ${used} of ${name}.`);
  process.exit(1);
}
const imported = findImport();
if (imported !== null) {
  console.log(
    `The development packages stay, because ${imported.file} imports ${imported.name}, which is one of them.`,
  );
  process.exit(1);
}
