// What applications cost that only wait: memory and processor time of the service and of its database, before and
// after.
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { makeRepository } from '../demo/repository';
import type { Stage } from '../demo/stage';

const SETTLE_MS = 20_000;
const WINDOW_MS = 40_000;
const DEPLOYED_WITHIN_MS = 600_000;
const MIB = 1024 * 1024;
const TICKS_PER_SECOND = 100;

/** Listens and nothing else, in 8 MB, so that a hundred fit on any machine. */
const WAITING =
  "use IO::Socket::INET; my $s = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $ENV{PORT}, Listen " +
  '=> 5, ReuseAddr => 1) or die; while (my $c = $s->accept) { close $c }\n';

interface Cost {
  /** MiB of the service. */
  memory: number;
  /** Milliseconds of processor time a second. */
  service: number;
  database: number;
}

/** Deploys `count` applications, with the health checks that every application has, and prints the difference. */
export async function idleCost(stage: Stage, count: number, print: (line: string) => void): Promise<void> {
  if (spawnSync('perl', ['-e', '1']).status !== 0)
    return print('Idle applications are not measured: this machine has no perl.');
  const before = await measureCost(stage, SETTLE_MS, WINDOW_MS);
  const begin = performance.now();
  await deployMany(stage, count);
  const took = (performance.now() - begin) / 1000;
  const after = await measureCost(stage, SETTLE_MS, WINDOW_MS);
  print(
    `| Idle applications | memory of the service, MiB | its CPU, ms/s | CPU of the database, ms/s |\n|---|--:|--:|--:|`,
  );
  for (const [name, { memory, service, database }] of [
    ['1', before],
    [String(count + 1), after],
  ] as const)
    print(`| ${name} | ${memory.toFixed(0)} | ${service.toFixed(1)} | ${database.toFixed(1)} |`);
  print(
    `\n${count} applications were deployed in ${took.toFixed(0)} s, ${((took / count) * 1000).toFixed(0)} ms each.`,
  );
}

async function deployMany({ api, directory }: Stage, count: number): Promise<void> {
  const repository = makeRepository(path.join(directory, 'idle'));
  writeFileSync(path.join(directory, 'idle/Procfile'), 'web: perl wait.pl\n');
  writeFileSync(path.join(directory, 'idle/wait.pl'), WAITING);
  repository.commit('', 'Wait');
  for (let index = 1; index <= count; index += 1) {
    const { id } = await api.call('POST', '/v2/applications', {
      name: `idle-${index}`,
      source: { type: 'git', repository_url: repository.url, branch: 'main' },
    });
    await api.call('POST', `/v2/applications/${id}/deployments`, {});
  }
  const open = ['new', 'deploying'];
  for (const status of open)
    await api.until<{ data: unknown[] }>(
      `/v2/applications?status=${status}&limit=1`,
      ({ data }) => data.length === 0,
      DEPLOYED_WITHIN_MS,
    );
  const { data } = await api.call<{ data: unknown[] }>('GET', '/v2/applications?status=running&limit=100');
  if (data.length < Math.min(100, count)) throw new Error(`only ${data.length} applications run`);
}

/** What is used in the time `windowMs`, once nothing has changed for `settleMs`. */
async function measureCost(stage: Stage, settleMs: number, windowMs: number): Promise<Cost> {
  await sleep(settleMs);
  const before = await cpuUsage(stage);
  await sleep(windowMs);
  const after = await cpuUsage(stage);
  const perSecond = (seconds: number): number => (seconds * 1_000_000) / windowMs;
  return {
    memory: after.rss / MIB,
    service: perSecond(after.cpu - before.cpu),
    database: perSecond(after.database - before.database),
  };
}

/** Seconds of processor time since their start, and bytes. */
export async function cpuUsage(stage: Stage): Promise<{ cpu: number; rss: number; database: number }> {
  return { ...(await serviceUsage(stage)), database: databaseSeconds(stage.directory) };
}

/** The same without its database. */
export async function serviceUsage({ adminPort }: Stage): Promise<{ cpu: number; rss: number }> {
  const text = await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text();
  const value = (name: string): number => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
  return {
    cpu: value('process_cpu_seconds_total'),
    rss: value('process_resident_memory_bytes'),
  };
}

/** Of the postmaster and its children, those that have ended included (proc_pid_stat(5), fields 14 to 17). */
function databaseSeconds(directory: string): number {
  const [postmaster = ''] = readFileSync(path.join(directory, 'postgres/data-18/postmaster.pid'), 'utf8').split('\n');
  const children = execFileSync('pgrep', ['-P', postmaster], { encoding: 'utf8' }).split('\n').filter(Boolean);
  const fields = (pid: string): number[] =>
    readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')
      .map(Number);
  const own = children.map((pid) => fields(pid).slice(11, 13));
  return [...own, fields(postmaster).slice(11, 15)].flat().reduce((sum, ticks) => sum + ticks, 0) / TICKS_PER_SECOND;
}
