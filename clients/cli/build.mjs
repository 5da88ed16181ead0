// Bundles the command line into one file: node build.mjs [--if-stale]
import * as esbuild from 'esbuild';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { parse } from 'yaml';
import { operationTable } from './operation_table.mjs';

const HERE = import.meta.dirname;
const DOCUMENT = path.join(HERE, '../../test/golden/openapi.yaml');
const OUTPUT = path.join(HERE, 'dist/svc.cjs');
const TABLE = path.join(HERE, 'dist/operations.json');
const SHARED = ['docker_rules.ts', 'source_rules.ts'].map((name) => `../../core/protocols/${name}`);

if (!process.argv.includes('--if-stale') || isStale()) await build();

async function build() {
  fs.mkdirSync(path.dirname(OUTPUT), { recursive: true });
  // A process that runs the old file meanwhile keeps it: what is renamed stays whole.
  const temporary = `${OUTPUT}.${process.pid}`;
  writeTable();
  const { version } = JSON.parse(fs.readFileSync(path.join(HERE, 'package.json'), 'utf8'));
  await esbuild.build({
    entryPoints: [path.join(HERE, 'src/main.ts')],
    outfile: temporary,
    bundle: true,
    platform: 'node',
    format: 'cjs',
    target: 'node20.19',
    minify: true,
    keepNames: false,
    legalComments: 'inline',
    banner: { js: '#!/usr/bin/env node' },
    define: { SVC_VERSION: JSON.stringify(version) },
    // A string that is parsed when it is needed: an object would be built at each start.
    loader: { '.json': 'text' },
    alias: { '#operations': TABLE },
    logLevel: 'warning',
  });
  fs.chmodSync(temporary, 0o755);
  fs.renameSync(temporary, OUTPUT);
}

function writeTable() {
  // Where the package stands alone, without the repository, the table that was built last is there.
  if (!fs.existsSync(DOCUMENT)) return;
  fs.writeFileSync(TABLE, JSON.stringify(operationTable(parse(fs.readFileSync(DOCUMENT, 'utf8')))));
}

function isStale() {
  const built = fs.statSync(OUTPUT, { throwIfNoEntry: false })?.mtimeMs;
  if (built === undefined) return true;
  const sources = fs.readdirSync(path.join(HERE, 'src'), { recursive: true }).map((name) => `src/${name}`);
  const own = ['package.json', 'build.mjs', 'operation_table.mjs'];
  const files = [...sources, ...own, ...SHARED].map((name) => path.join(HERE, name));
  return [...files, DOCUMENT].some((file) => fs.existsSync(file) && fs.statSync(file).mtimeMs > built);
}
