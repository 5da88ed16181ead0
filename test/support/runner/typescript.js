// Lets Node run the sources, in jest's own processes and in children of a test:
// node --require test/support/runner/typescript.js -e "require('./server/platform/embedded')".
// What was translated once is kept beside the sources, named after what it was made of.
const { createHash } = require('node:crypto');
const { mkdirSync, readFileSync, renameSync, writeFileSync } = require('node:fs');
const path = require('node:path');

const kept = path.join(__dirname, '../../../.cache/typescript');
/** Where the source map of each file that was loaded is. */
const sourceMaps = new Map();

require.extensions['.ts'] = (module, file) => {
  const source = readFileSync(file, 'utf8');
  const place = path.join(kept, `${createHash('sha256').update(`${file}\n${source}`).digest('hex')}.js`);
  sourceMaps.set(file, `${place}.map`);
  module._compile(readKept(place) ?? translate(file, source, place), file);
};

function readKept(place) {
  try {
    return readFileSync(place, 'utf8');
  } catch {
    return null;
  }
}

function translate(file, source, place) {
  const { transformSync } = require('@swc/core');
  const { code, map } = transformSync(source, {
    filename: file,
    jsc: { parser: { syntax: 'typescript' }, target: 'es2022' },
    module: { type: 'commonjs' },
    sourceMaps: true,
  });
  keep(map, `${place}.map`);
  keep(code, place);
  return code;
}

// Of several processes each has a draft of its own. One that runs as another user may not write here, and goes without.
function keep(code, place) {
  const draft = `${place}.${process.pid}`;
  try {
    mkdirSync(kept, { recursive: true });
    writeFileSync(draft, code);
    renameSync(draft, place);
  } catch (error) {
    if (error.code !== 'EACCES' && error.code !== 'EPERM' && error.code !== 'EROFS') throw error;
  }
}

module.exports = { sourceMaps };
