// Whether a process starts a program of a development dependency: these dependencies must then be kept. Exits with 0
// when they may be removed.
// node - '["npm start", ...]', in the root directory of the source.
'use strict';
const { readFileSync } = require('node:fs');

const { dependencies = {}, devDependencies = {}, scripts = {} } = JSON.parse(readFileSync('package.json', 'utf8'));
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

JSON.parse(process.argv[2] ?? '').forEach(collect);
for (const name of Object.keys(devDependencies).filter((one) => !(one in dependencies))) {
  const programs = programsOf(name);
  const used = [...words].find((word) => programs.includes(word) || word === name || word.startsWith(`${name}/`));
  if (used === undefined) continue;
  console.log(`The development packages stay, because the processes use ${used} of ${name}.`);
  process.exit(1);
}
