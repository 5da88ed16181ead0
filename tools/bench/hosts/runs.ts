// npm run bench:runs: how long it takes from the request for a run to the first byte of its output, beside a sandbox
// that is started by hand; with --schedules, what schedules of the same second do to the API instead.
//   npm run bench:runs -- [--rounds=20] [--schedules=5000]
import { spawn } from 'node:child_process';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { WebSocket } from 'ws';
import { makeRepository } from '../../demo/repository';
import { openStage, type Stage } from '../../demo/stage';
import { median } from '../measure';
import { printLine, requirePrograms, runBench } from '../run';
import { measureSchedules } from './schedules';

const OPEN = {
  NETWORK: process.env.NETWORK ?? 'shared',
  RATE_LIMIT_READ: '10000000',
  RATE_LIMIT_WRITE: '10000000',
  RATE_LIMIT_DEPLOY: '10000000',
};
const TARGET_MS = 100;
const SANDBOX = ['--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc', '--unshare-pid', '--die-with-parent'];
const DEPLOYED_WITHIN_MS = 120_000;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { rounds: { type: 'string', default: '20' }, schedules: { type: 'string' } },
  });
  printLine(
    `Node ${process.version}, ${os.cpus().length} cores (${os.cpus()[0]?.model.trim()}), load ` +
      `${os.loadavg()[0]?.toFixed(1)}\n`,
  );
  if (values.schedules !== undefined) return measureSchedules(Number(values.schedules));
  requirePrograms('bwrap');
  const stage = await openStage(OPEN);
  try {
    await measureRuns(stage, Number(values.rounds));
  } finally {
    await removeApplications(stage).catch(() => {});
    await stage.close();
  }
}

async function measureRuns(stage: Stage, rounds: number): Promise<void> {
  const repository = makeRepository(path.join(stage.directory, 'sample'));
  repository.commit('first', 'First version');
  const source = { type: 'git', repository_url: repository.url };
  const { id } = await stage.api.call('POST', '/v2/applications', { name: 'sample', source });
  const deployment = await stage.api.call('POST', `/v2/applications/${id}/deployments`, {});
  const place = `/v2/applications/${id}/deployments/${deployment.id}`;
  await stage.api.until(place, ({ status }) => status === 'active', DEPLOYED_WITHIN_MS);
  const found = { sandbox: [] as number[], run: [] as number[], terminal: [] as number[] };
  for (let round = 0; round <= rounds; round += 1) {
    const one = {
      sandbox: await firstByteOfSandbox(),
      run: await firstByteOfRun(stage, id, {}),
      terminal: await firstByteOfRun(stage, id, { tty: true }),
    };
    if (round) for (const name of ['sandbox', 'run', 'terminal'] as const) found[name].push(one[name]);
  }
  printLine('| To the first byte, ms | median | least | most |\n|---|--:|--:|--:|');
  printLine(row('bwrap, started by hand', found.sandbox));
  printLine(row('POST of a run, then attach', found.run));
  printLine(row('the same with a terminal', found.terminal));
  const over = median(found.run) - median(found.sandbox);
  printLine(`\nA run takes ${over.toFixed(0)} ms more, ≤ ${TARGET_MS}: ${over <= TARGET_MS ? 'met' : 'MISSED'}`);
}

function firstByteOfSandbox(): Promise<number> {
  const begun = performance.now();
  const child = spawn('bwrap', [...SANDBOX, 'sh', '-c', 'echo first'], { stdio: ['ignore', 'pipe', 'inherit'] });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.stdout.once('data', () => resolve(performance.now() - begun));
  });
}

async function firstByteOfRun({ api, address, headers }: Stage, application: string, more: object): Promise<number> {
  const begun = performance.now();
  const place = `/v2/applications/${application}/runs`;
  const { id } = await api.call('POST', place, { command: 'echo first', ...more });
  const ws = new WebSocket(`${address.replace('http', 'ws')}${place}/${id}/attach`, ['platform.run.v1'], { headers });
  const first = await new Promise<number>((resolve, reject) => {
    ws.once('error', reject);
    ws.on('message', (data: Buffer) => data[0] === 1 && resolve(performance.now() - begun));
  });
  await new Promise((resolve) => ws.once('close', resolve));
  // Else the next one finds the work of this one.
  await api.until(`${place}/${id}`, ({ status }) => status === 'succeeded');
  return first;
}

function row(name: string, all: number[]): string {
  return `| ${name} | ${[median(all), Math.min(...all), Math.max(...all)].map((ms) => ms.toFixed(0)).join(' | ')} |`;
}

async function removeApplications({ api }: Stage): Promise<void> {
  const { data } = await api.call<{ data: { id: string }[] }>('GET', '/v2/applications?limit=100');
  for (const { id } of data) await api.call('DELETE', `/v2/applications/${id}`);
  await api.until<{ data: unknown[] }>('/v2/applications', (page) => page.data.length === 0);
  // Their units go behind the answer.
  await new Promise((resolve) => setTimeout(resolve, 5_000));
}

runBench(main);
