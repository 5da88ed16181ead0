// How fast databases are backed up and restored through the API, beside the bare programs of their engines on the same
// data in the same run. Both write compressed where the platform does, to the same disk.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Resource } from '../../demo/api';
import type { Stage } from '../../demo/stage';
import { bareOf } from './databases_bare';
import { fill } from './databases_fill';
import { secondsOf, type EngineName, type Login } from './databases_server';
import { median } from '../measure';

const ROUNDS = 3;
const POLL_MS = 20;
const GIVE_UP_MS = 1_800_000;
const PACKAGES: Record<EngineName, string> = {
  postgresql: 's-1vcpu-1gb',
  mariadb: 's-1vcpu-1gb',
  redis: 'kv-1vcpu-1gb',
};

export async function backupTable(
  stage: Stage,
  engines: EngineName[],
  megabytes: number,
  print: (line: string) => void,
): Promise<void> {
  print(
    `| ${megabytes} MB of data, median of ${ROUNDS} | backup, s | MB/s | bare, s | ratio | restore, s | MB/s | ` +
      'bare, s | ratio | size of the backup, MB |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|',
  );
  for (const engine of engines) print(await row(stage, engine, megabytes));
  print('');
}

async function row(stage: Stage, engine: EngineName, megabytes: number): Promise<string> {
  const { id } = await stage.api.call('POST', '/v2/databases', {
    name: `data-${engine}`,
    engine,
    database_package: PACKAGES[engine],
    backup_schedule: { enabled: false },
  });
  await rested(stage, id);
  const login = await stage.api.call<Login>('GET', `/v2/databases/${id}/credentials`);
  await fill(engine, login, megabytes);
  const bare = await bareOf(engine, stage, id, login);
  const found = {
    backup: [] as number[],
    restore: [] as number[],
    bareBackup: [] as number[],
    bareRestore: [] as number[],
  };
  let last: Resource | undefined;
  for (let round = 1; round <= ROUNDS; round += 1) {
    found.backup.push(await secondsOf(async () => (last = await backUp(stage, id))));
    found.bareRestore.push(await bare.restore(String(last?.id)));
    found.bareBackup.push(await bare.backup());
    found.restore.push(await secondsOf(() => restore(stage, id, String(last?.id))));
  }
  bare.close();
  await stage.api.call('DELETE', `/v2/databases/${id}`);
  const pair = (ours: number[], theirs: number[]): string =>
    `${median(ours).toFixed(2)} | ${(megabytes / median(ours)).toFixed(0)} | ${median(theirs).toFixed(2)} | ` +
    `${(median(theirs) / median(ours)).toFixed(2)}`;
  return (
    `| ${engine} | ${pair(found.backup, found.bareBackup)} | ${pair(found.restore, found.bareRestore)} | ` +
    `${(Number(last?.size_bytes) / 1e6).toFixed(0)} |`
  );
}

async function backUp({ api }: Stage, id: string): Promise<Resource> {
  const { id: backup } = await api.call('POST', `/v2/databases/${id}/backups`, {});
  const made = await settled(() => api.call('GET', `/v2/databases/${id}/backups/${backup}`), ['completed', 'failed']);
  if (made.status === 'failed') throw new Error(String(made.status_reason));
  return made;
}

async function restore(stage: Stage, id: string, backup_id: string): Promise<void> {
  await stage.api.call('POST', `/v2/databases/${id}/restore`, { backup_id });
  await rested(stage, id);
}

async function rested({ api }: Stage, id: string): Promise<void> {
  const { status, status_reason } = await settled(
    () => api.call('GET', `/v2/databases/${id}`),
    ['available', 'failed'],
  );
  if (status === 'failed') throw new Error(String(status_reason));
}

async function settled(load: () => Promise<Resource>, statuses: string[]): Promise<Resource> {
  for (const end = Date.now() + GIVE_UP_MS; Date.now() < end; await sleep(POLL_MS)) {
    const found = await load();
    if (statuses.includes(found.status)) return found;
  }
  throw new Error(`it is not ${statuses.join(' or ')} within ${GIVE_UP_MS} ms`);
}
