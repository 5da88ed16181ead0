// npm run bench:databases: a large PostgreSQL is imported while it is written, beside pg_dump and pg_restore by hand,
// then exported, backed up, and its backup is proven beside an application.
//   npm run bench:databases -- [--gigabytes=1] [--mode=copy|follow]
// Memory is that of the service with the programs that it starts, without servers and applications. The directory of
// temporary files needs about eight times the gigabytes.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { Resource } from '../../demo/api';
import { freePort } from '../../demo/ports';
import { openStage, type Stage } from '../../demo/stage';
import { load, type Round } from '../load';
import { printLine, runBench } from '../run';
import { measured } from './memory';
import { inSession, startSource, type Source } from './source';

const { values } = parseArgs({
  options: { gigabytes: { type: 'string', default: '1' }, mode: { type: 'string', default: 'copy' } },
});
const GIGABYTES = Number(values.gigabytes);
const WITHIN_MS = 4 * 3_600_000;
const RATIO_MAX = 1.2;
const [CONNECTIONS, ROUND_MS, QUIET_ROUNDS] = [4, 2_000, 5];

runBench(async () => {
  const directory = mkdtempSync(path.join(os.tmpdir(), 'platform-databases-'));
  chmodSync(directory, 0o711);
  const port = await freePort();
  const stage = await openStage({
    ...{ ALLOW_PRIVATE_ADDRESSES: '1', NETWORK: 'shared', DATABASE_PORTS: '31700-31799' },
    ...{ S3_PORT: '0', REGISTRY_PORT: '0', DNS_PORT: '0', MX_PORT: '0' },
    QUOTAS: '{"databases":null,"database_storage_gb":null}',
  });
  let source: Source | undefined;
  try {
    printLine(`making a source of ${GIGABYTES} GB`);
    source = await startSource(path.join(directory, 'source'), port, GIGABYTES);
    await measure(stage, source);
  } finally {
    source?.stop();
    await stage.close();
    rmSync(directory, { recursive: true, force: true });
  }
});

async function measure(stage: Stage, source: Source): Promise<void> {
  printLine(`the source has ${((await source.bytes()) / 2 ** 30).toFixed(2)} GB`);
  const idle = await measured(stage.pid, () => sleep(ROUND_MS));
  printLine(`memory of the service at rest: ${idle.megabytes} MB`);
  const byHand = await restoreByHand(stage, source);
  const database = await createDatabase(stage, 'imported', source);
  const stopWriting = source.write();
  const imported = await measured(stage.pid, () => importInto(stage, database, source));
  const written = await stopWriting();
  const ratio = imported.seconds / byHand;
  printLine(
    `import (${values.mode}): ${imported.seconds.toFixed(1)} s, ${ratio.toFixed(2)} times that by hand ` +
      `(${ratio <= RATIO_MAX ? 'good' : `MORE THAN ${RATIO_MAX}`}), ${imported.megabytes} MB; ` +
      `${written} rows were written meanwhile`,
  );
  const backup = await measured(stage.pid, () => backUp(stage, database));
  printLine(`backup: ${backup.seconds.toFixed(1)} s, ${backup.megabytes} MB`);
  const exported = await measured(stage.pid, () => download(stage, database, backup.result));
  const megabytes = exported.result / 2 ** 20;
  printLine(
    `export: ${exported.seconds.toFixed(1)} s for ${megabytes.toFixed(0)} MB, ${exported.megabytes} MB of memory`,
  );
  const application = await deploy(stage);
  const quiet: Round[] = [];
  while (quiet.length < QUIET_ROUNDS) quiet.push(await visits(stage, application));
  const busy: Round[] = [];
  const proof = await measured(stage.pid, () => prove(stage, database, backup.result, { application, rounds: busy }));
  printLine(`proof: ${proof.seconds.toFixed(1)} s, ${proof.megabytes} MB, ${proof.result}`);
  const p99 = (rounds: Round[]): string => {
    const times = rounds.map((round) => round.p99);
    return `${median(times).toFixed(1)} ms (${Math.max(...times).toFixed(1)})`;
  };
  printLine(`a neighbour's p99, median (worst) of rounds of 2 s: ${p99(quiet)} before, ${p99(busy)} while it ran`);
}

/** The most common way without a platform, into a database of the same package. @returns seconds */
async function restoreByHand(stage: Stage, source: Source): Promise<number> {
  const database = await createDatabase(stage, 'by-hand', source);
  const target = await addressOf(stage, database);
  const stopWriting = source.write();
  const began = performance.now();
  const dump = spawn(path.join(source.bin, 'pg_dump'), ['-Fc', '-Z0', source.address], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const restore = spawn(path.join(source.bin, 'pg_restore'), ['--no-owner', '--no-privileges', '-d', target], {
    stdio: [dump.stdout, 'ignore', 'inherit'],
  });
  dump.stdout.destroy();
  const [[code], [other]] = await Promise.all([once(restore, 'close'), once(dump, 'exit')]);
  if (code !== 0 || other !== 0) throw new Error(`pg_dump ended with ${other}, pg_restore with ${code}`);
  await inSession(target, (client) => client.query('analyze'));
  const seconds = (performance.now() - began) / 1000;
  await stopWriting();
  printLine(`pg_dump | pg_restore by hand: ${seconds.toFixed(1)} s`);
  await stage.api.remove(`/v2/databases/${database}`);
  return seconds;
}

async function createDatabase({ api }: Stage, name: string, { series: engine_version }: Source): Promise<string> {
  const storage_gb = Math.max(1, Math.ceil(GIGABYTES * 2));
  const database_package = await packageFor(api, storage_gb);
  const { id } = await api.call('POST', '/v2/databases', {
    ...{ name, engine: 'postgresql', engine_version, storage_gb, database_package },
    backup_schedule: { enabled: false },
  });
  await api.until(`/v2/databases/${id}`, ({ status }) => status === 'available', WITHIN_MS);
  return id;
}

interface Package extends Resource {
  max_storage_gb: number;
}

async function packageFor(api: Stage['api'], gigabytes: number): Promise<string> {
  const { data } = await api.call<{ data: Package[] }>('GET', '/v2/database_packages');
  const found = data.filter((one) => one.max_storage_gb >= gigabytes)[0];
  if (!found) throw new Error(`no package has ${gigabytes} GB of storage`);
  return found.id;
}

async function importInto({ api }: Stage, database: string, source: Source): Promise<void> {
  const list = `/v2/databases/${database}/imports`;
  const { id } = await api.call('POST', list, { source: { url: source.address }, mode: values.mode });
  const isOver = ({ status, phase }: Resource): boolean =>
    ['completed', 'failed', 'canceled'].includes(status) || phase === 'following';
  const { status, status_reason } = await api.until(`${list}/${id}`, isOver, WITHIN_MS);
  if (status === 'failed') throw new Error(`the import failed: ${status_reason}`);
  if (status === 'completed') return;
  await api.call('POST', `${list}/${id}/finish`, { make_source_read_only: true });
  const done = await api.until(`${list}/${id}`, (one) => one.status !== 'running', WITHIN_MS);
  if (done.status !== 'completed') throw new Error(`the import ended: ${done.status_reason}`);
}

async function backUp({ api }: Stage, database: string): Promise<string> {
  const { id } = await api.call('POST', `/v2/databases/${database}/backups`, { note: 'measured' });
  const place = `/v2/databases/${database}/backups/${id}`;
  const done = await api.until(place, ({ status }) => ['completed', 'failed'].includes(status), WITHIN_MS);
  if (done.status !== 'completed') throw new Error(`the backup failed: ${done.status_reason}`);
  return id;
}

/** @returns bytes */
async function download({ api }: Stage, database: string, backup: string): Promise<number> {
  const { url } = await api.call<{ url: string }>('GET', `/v2/databases/${database}/backups/${backup}/download`);
  let bytes = 0;
  for await (const piece of (await fetch(url)).body!) bytes += (piece as Uint8Array).length;
  return bytes;
}

async function deploy({ api }: Stage): Promise<Resource> {
  const application = await api.call('POST', '/v2/applications', { name: 'neighbour', preset: 'node-web' });
  const { id } = await api.call('POST', `/v2/applications/${application.id}/deployments`, {});
  const deployment = `/v2/applications/${application.id}/deployments/${id}`;
  await api.until(deployment, ({ status }) => status === 'active', WITHIN_MS);
  return application;
}

function visits(stage: Stage, { default_hostname }: Resource): Promise<Round> {
  const request = `GET / HTTP/1.1\r\nHost: ${String(default_hostname)}\r\n\r\n`;
  const next = () => ({ request, status: 200, body: null });
  return load({ port: stage.port, connections: CONNECTIONS, milliseconds: ROUND_MS, next });
}

/** @returns what was found */
async function prove(
  stage: Stage,
  database: string,
  backup: string,
  { application, rounds }: { application: Resource; rounds: Round[] },
): Promise<string> {
  const place = `/v2/databases/${database}/backups/${backup}`;
  const { proof_status } = await stage.api.call('GET', place);
  if (proof_status !== 'proving' && proof_status !== 'proven') await stage.api.call('POST', `${place}/prove`);
  for (;;) {
    rounds.push(await visits(stage, application));
    const found = await stage.api.call('GET', place);
    if (found.proof_status === 'proven') return 'proven';
    if (found.proof_status === 'failed') return `FAILED: ${String(found.proof_failure)}`;
  }
}

async function addressOf({ api }: Stage, database: string): Promise<string> {
  const found = await api.call<{ endpoints: { connection_string: string }[] }>(
    'GET',
    `/v2/databases/${database}/credentials`,
  );
  return found.endpoints[0]!.connection_string;
}

function median(numbers: number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? NaN;
}
