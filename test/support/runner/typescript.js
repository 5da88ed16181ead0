// Lets Node run the sources, in jest's own processes and in children of a test:
// node --require test/support/runner/typescript.js -e "require('./server/platform/embedded')".
// What was translated and compiled once is kept beside the sources, named after what it was made of.
const { createHash, randomUUID } = require('node:crypto');
const { mkdirSync, readFileSync, renameSync, writeFileSync } = require('node:fs');
const { createRequire, wrap } = require('node:module');
const path = require('node:path');
const { constants, Script } = require('node:vm');

const ROOT = path.join(__dirname, '../../..');
const kept = path.join(ROOT, '.cache/typescript');
/** V8 takes compiled code of the same version that runs with the same flags. */
const engine = hashOf([process.version, process.arch, ...process.execArgv.filter((one) => /^--[^=]*size/.test(one))]);
/** Where the source map of each file that was loaded is. */
const sourceMaps = new Map();

require.extensions['.ts'] = (module, file) => {
  const source = readFileSync(file, 'utf8');
  const place = path.join(kept, hashOf([path.relative(ROOT, file), source]));
  sourceMaps.set(file, `${place}.js.map`);
  const code = readKept(`${place}.js`)?.toString() ?? translate(file, source, `${place}.js`);
  run(module, file, code, `${place}.${engine}`);
};

function hashOf(parts) {
  return createHash('sha256').update(parts.join('\n')).digest('hex').slice(0, 40);
}

function readKept(place) {
  try {
    return readFileSync(place);
  } catch {
    return undefined;
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

/** Like module._compile(), which compiles anew in each process. */
function run(module, file, code, place) {
  const cachedData = readKept(place);
  const importModuleDynamically = constants.USE_MAIN_CONTEXT_DEFAULT_LOADER;
  const script = new Script(wrap(code.replace(/^#!.*/, '')), { filename: file, cachedData, importModuleDynamically });
  script.runInThisContext().call(module.exports, module.exports, createRequire(file), module, file, path.dirname(file));
  if (!cachedData || script.cachedDataRejected) keep(script.createCachedData(), place);
}

// Of several processes each has a draft of its own; on machines of a test cluster they may have the same id. One that
// runs as another user may not write here, and goes without.
function keep(content, place) {
  const draft = `${place}.${randomUUID()}`;
  try {
    mkdirSync(kept, { recursive: true });
    writeFileSync(draft, content);
    renameSync(draft, place);
  } catch (error) {
    if (error.code !== 'EACCES' && error.code !== 'EPERM' && error.code !== 'EROFS') throw error;
  }
}

module.exports = { sourceMaps };
