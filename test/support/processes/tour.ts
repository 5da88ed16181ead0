// Documents whose code blocks run as they stand, pasted into one shell against what `npm start` starts.
import { spawn, type ChildProcess } from 'node:child_process';
import * as fs from 'node:fs';
import os from 'node:os';
import * as path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from './free_port';

const ROOT = path.resolve(__dirname, '../../..');
const UNITS_GONE_MS = 20_000;

export interface Tour {
  /**
   * Runs the blocks marked `sh tour` of a document, and gives what each printed. @throws Error with all output where
   * one fails
   */
  run(file: string): Promise<string[]>;
  dataDir: string;
  close(): Promise<void>;
}

/** @param settings of the service, over those of a tour */
export async function startTour(settings: Record<string, string> = {}): Promise<Tour> {
  // Not below /dev, where no unit may have a mount of its own: a build mounts its caches where they are.
  const data = fs.mkdtempSync(path.join(os.tmpdir(), 'tour-'));
  // As root, PostgreSQL runs as another user, who must get through.
  fs.chmodSync(data, 0o755);
  const ingress = String(await freePort());
  const { PATH, HOME } = process.env;
  const env = { PATH, HOME, PLATFORM_DATA_DIR: data, INGRESS_PORT: ingress };
  const own = {
    PORT: '0',
    ADMIN_PORT: '0',
    VOLUME_DRIVER: 'directory',
    // People paste block after block, not all within a minute.
    DESTROYING_CALLS_PER_MINUTE: '1000',
    PREFERRED_NODE: 'host',
    PREFERRED_PYTHON: 'host',
  };
  const service = await start({ ...env, ...own, ...settings });
  return {
    run: (file) => paste(blocksOf(file), env),
    dataDir: data,
    async close() {
      await untilUnitsGone(path.join(data, 'runtime/units'));
      service.kill('SIGTERM');
      if (service.exitCode === null) await new Promise((resolve) => service.once('exit', resolve));
      fs.rmSync(data, { recursive: true, force: true });
    },
  };
}

// Of what the tour has deleted; else they would outlive it.
async function untilUnitsGone(units: string): Promise<void> {
  for (const end = Date.now() + UNITS_GONE_MS; Date.now() < end && fs.existsSync(units); await sleep(100))
    if (fs.readdirSync(units).length === 0) return;
}

function start(env: NodeJS.ProcessEnv): Promise<ChildProcess> {
  const child = spawn(process.execPath, ['tools/scripts/start.mjs', 'server/main.js'], {
    cwd: ROOT,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  return new Promise((resolve, reject) => {
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (text: Buffer) => {
        output += text.toString();
        if (output.includes('"msg":"ready"')) resolve(child);
      });
    }
    child.once('exit', (code) => reject(new Error(`npm start ended with ${code}: ${output}`)));
  });
}

/** Runs the blocks of a document in one shell with variables of the caller, and gives what each printed. */
export function pasteDocument(file: string, variables: Record<string, string>): Promise<string[]> {
  return paste([FUNCTIONS, ...blocksOf(file)], { PATH: process.env.PATH, ...variables });
}

/** As the tour of the README defines them. */
const FUNCTIONS = `
field() { node -p "JSON.parse(require('fs').readFileSync(0)).$1"; }
api() {
  curl -sS "$BASE$1" -H "Authorization: Bearer $KEY" -H "X-Svc-Project: $PROJECT" \\
    -H 'Content-Type: application/json' "\${@:2}"
  echo
}`;

/** Code blocks that are marked `sh tour`. */
function blocksOf(file: string): string[] {
  const text = fs.readFileSync(path.join(ROOT, file), 'utf8');
  return [...text.matchAll(/^```sh tour\n([^]*?)^```$/gm)].map(([, block]) => block as string);
}

/** Runs the blocks in one shell, as somebody who pastes them, and gives what each printed. */
function paste(blocks: string[], env: NodeJS.ProcessEnv): Promise<string[]> {
  const mark = '\n=== next block ===\n';
  const script = ['set -euo pipefail', ...blocks.flatMap((block) => [block, `printf '%s' '${mark}'`])].join('\n');
  const shell = spawn('bash', ['-c', script], { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'pipe'] });
  return new Promise((resolve, reject) => {
    let output = '';
    let complaints = '';
    shell.stdout.on('data', (text: Buffer) => (output += text.toString()));
    shell.stderr.on('data', (text: Buffer) => (complaints += text.toString()));
    shell.once('close', (code) =>
      code === 0
        ? resolve(output.split(mark).slice(0, -1))
        : reject(new Error(`the tour ended with ${code}\n${output}\n${complaints}`)),
    );
  });
}
