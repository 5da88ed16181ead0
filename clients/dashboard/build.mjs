// Builds the pages into dist/, each file also compressed: node build.mjs [--if-stale]
import * as fs from 'node:fs';
import * as path from 'node:path';
import * as zlib from 'node:zlib';
import { build } from 'vite';
import { operationTable } from './operation_table.mjs';
import { resourceTable } from './resource_table.mjs';

const HERE = import.meta.dirname;
const SCHEMA = path.join(HERE, '../../test/golden/schema.graphql');
const DIST = path.join(HERE, 'dist');
const OPERATIONS = path.join(HERE, '.cache/operations.json');
const RESOURCES = path.join(HERE, '.cache/resources.json');
const TABLES = ['operation_table.mjs', 'resource_table.mjs', 'resource_types.mjs'];
const CORE = ['cron.ts', 'docker_rules.ts', 'local_clock.ts', 'source_rules.ts'];
const SHARED = CORE.map((name) => `../../core/protocols/${name}`);
const INPUTS = ['build.mjs', ...TABLES, 'index.html', 'package.json', 'public', 'src', ...SHARED];

if (!process.argv.includes('--if-stale') || isStale()) await run();

async function run() {
  // Built aside: a service that starts meanwhile finds all of the files that were built before, or all of the new ones.
  const temporary = path.join(HERE, `.cache/dist.${process.pid}`);
  fs.mkdirSync(path.dirname(OPERATIONS), { recursive: true });
  const sdl = fs.readFileSync(SCHEMA, 'utf8');
  fs.writeFileSync(OPERATIONS, JSON.stringify(operationTable(sdl)));
  fs.writeFileSync(RESOURCES, JSON.stringify(resourceTable(sdl)));
  await build({
    root: HERE,
    configFile: false,
    logLevel: 'warn',
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
    resolve: { alias: { '#operations': OPERATIONS, '#resources': RESOURCES } },
    // The policy of the page refuses what would stand in the document or in other files as data.
    build: { outDir: temporary, emptyOutDir: true, assetsInlineLimit: 0, modulePreload: { polyfill: false } },
  });
  for (const file of filesBelow(temporary)) compress(file);
  replace(DIST, temporary);
}

/** Of builds that end at the same moment, one finds what another has just put there: that is taken away again. */
function replace(place, built) {
  const before = `${built}.before`;
  for (let left = 10; ; left -= 1) {
    try {
      if (fs.existsSync(place)) fs.renameSync(place, before);
      fs.renameSync(built, place);
      return fs.rmSync(before, { recursive: true, force: true });
    } catch (error) {
      if (!left || !/^(ENOTEMPTY|EEXIST|ENOENT)$/.test(error.code)) throw error;
      fs.rmSync(before, { recursive: true, force: true });
    }
  }
}

function compress(file) {
  const content = fs.readFileSync(file);
  const { BROTLI_PARAM_QUALITY, BROTLI_PARAM_SIZE_HINT } = zlib.constants;
  const params = { [BROTLI_PARAM_QUALITY]: 11, [BROTLI_PARAM_SIZE_HINT]: content.length };
  fs.writeFileSync(`${file}.br`, zlib.brotliCompressSync(content, { params }));
  fs.writeFileSync(`${file}.gz`, zlib.gzipSync(content, { level: 9 }));
}

function isStale() {
  const built = fs.statSync(path.join(DIST, 'index.html'), { throwIfNoEntry: false })?.mtimeMs;
  if (built === undefined) return true;
  const files = INPUTS.map((name) => path.join(HERE, name)).filter((file) => fs.existsSync(file));
  return [...files.flatMap(filesBelow), SCHEMA].some((file) => fs.statSync(file).mtimeMs > built);
}

function filesBelow(place) {
  if (!fs.statSync(place).isDirectory()) return [place];
  return fs
    .readdirSync(place, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name));
}
