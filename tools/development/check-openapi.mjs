// Checks an OpenAPI file: redocly recommended-strict (warnings are errors there), spectral:oas down to hints, and
// TypeScript clients of two generators that must pass `tsc --strict`. Any error or warning ends with exit code 1.
// Usage: node tools/development/check-openapi.mjs openapi.yaml
import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('.', import.meta.url));
// A package that needs another TypeScript than the project stands in this folder, the others above.
const bin = (name) =>
  [here, join(here, '../..')].map((folder) => join(folder, 'node_modules/.bin', name)).find((file) => existsSync(file));
const rules = (name) => join(here, 'openapi', name);

const [argument] = process.argv.slice(2);
if (!argument) {
  console.error('usage: node tools/development/check-openapi.mjs FILE');
  process.exit(2);
}
const file = resolve(argument);
mkdirSync(join(here, '.cache'), { recursive: true });
const folder = mkdtempSync(join(here, '.cache', 'clients-'));

const checks = [
  [
    'redocly recommended-strict',
    () => run('redocly', ['lint', file, '--config', rules('redocly.yaml'), '--max-problems', '50']),
  ],
  [
    'spectral spectral:oas',
    () => run('spectral', ['lint', file, '--ruleset', rules('spectral.yaml'), '--fail-severity', 'hint']),
  ],
  [
    'openapi-typescript, tsc --strict',
    () => client('openapi-typescript', (out) => run('openapi-typescript', [file, '-o', join(out, 'schema.ts')])),
  ],
  [
    '@hey-api/openapi-ts, tsc --strict',
    () => client('hey-api', (out) => run('openapi-ts', ['-i', file, '-o', join(out, 'client')])),
  ],
];

let failed = 0;
try {
  for (const [name, check] of checks) {
    const { ok, output } = await check();
    console.log(`${ok ? 'ok    ' : 'FAILED'} ${name}`);
    if (!ok) console.log(output);
    failed += ok ? 0 : 1;
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.exit(failed ? 1 : 0);

async function client(name, generate) {
  const out = join(folder, name);
  mkdirSync(out);
  const generated = await generate(out);
  if (!generated.ok) return generated;
  cpSync(rules('client.tsconfig.json'), join(out, 'tsconfig.json'));
  return run('tsc', ['-p', out]);
}

function run(name, args) {
  const env = {
    ...process.env,
    REDOCLY_TELEMETRY: 'off',
    REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true',
    CI: 'true',
    NO_COLOR: '1',
  };
  return new Promise((done) => {
    execFile(bin(name), args, { env, cwd: here, maxBuffer: 32 * 1024 * 1024 }, (error, stdout, stderr) => {
      done({ ok: !error, output: stdout + stderr });
    });
  });
}
