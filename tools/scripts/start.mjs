// Runs a compiled program in this process, so that signals reach it; builds before, if the sources have changed.
//   node tools/scripts/start.mjs server/main.js [arguments]
import * as path from 'node:path';
import { pathToFileURL } from 'node:url';
import { buildIfStale } from './build.mjs';

const [program, ...args] = process.argv.slice(2);
if (!program) {
  process.stderr.write('usage: node tools/scripts/start.mjs <file below dist> [arguments]\n');
  process.exit(2);
}

const failed = buildIfStale();
if (failed) process.exit(failed);

const file = path.resolve(import.meta.dirname, '../../dist', program);
process.argv = [process.execPath, file, ...args];
await import(pathToFileURL(file).href);
