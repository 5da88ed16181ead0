/** @tier heavy @quarter 4 @covers server/backup server/operator/backup.ts */
// A repository of backups behind a slow link, one that hangs, that may only be read, and one that has lost a file.
import { execFileSync, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import * as fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { BackupJournal } from '../../server/platform/backup_journal';
import { startResticServer, type ResticServer } from '../support/processes/restic_server';
import { wholeInstallation, type WholeInstallation } from '../support/processes/whole_installation';
import { ROOT } from '../support/runner/repository';
import { fileNeeds, testOfRoot } from '../support/runner/programs';

fileNeeds('restic');
jest.setTimeout(600_000);
const asRoot = testOfRoot();

const FILE_BYTES = 8_000_000;
const SLOW_BYTES_PER_SECOND = 400_000;
const ANSWERED_WITHIN_MS = 5_000;
const SHORT_STALL = { NODE_OPTIONS: `--require ${path.join(ROOT, 'test/support/processes/short_stall.js')}` };
/** In which restic says why it tries again, also on a busy machine. */
const LONGER_STALL = { ...SHORT_STALL, STALLED_SECONDS: '20' };

let whole: WholeInstallation;
let server: ResticServer;
let files: string;

beforeAll(async () => {
  whole = wholeInstallation();
  server = await startResticServer(path.join(path.dirname(whole.data), 'server'));
  const { call, waitFor } = await whole.start({ RESTIC_REPOSITORY: '' });
  const volume = await call('POST', '/v2/volumes', { name: 'files', size_gb: 1 });
  await waitFor(`/v2/volumes/${volume.id}`, ['available']);
  files = path.join(whole.data, 'volumes', volume.id, 'data');
});

afterAll(async () => {
  await server?.close();
  await whole?.remove();
});

interface Ended {
  code: number | null;
  said: string;
}

interface Begun {
  child: ChildProcess;
  ended: Promise<Ended>;
}

/** Begins a backup of a new file, which is not there yet in the repository. */
function begin(env: Record<string, string> = {}): Begun {
  fs.writeFileSync(path.join(files, 'movie'), randomBytes(FILE_BYTES));
  const child = whole.begin(['backup', '--no-proof'], { RESTIC_REPOSITORY: server.address, ...env });
  let said = '';
  child.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString()));
  return { child, ended: new Promise((resolve) => child.on('close', (code) => resolve({ code, said }))) };
}

const journal = (): BackupJournal => JSON.parse(fs.readFileSync(path.join(whole.data, 'backup/last.json'), 'utf8'));

function restic(...words: string[]): string {
  const env = { ...process.env, ...whole.repository, RESTIC_REPOSITORY: path.join(server.directory, 'repository') };
  return execFileSync('restic', words, { env, encoding: 'utf8' });
}

/** Until it has sent so much. @throws Error where it ends before that */
async function uploading({ child, ended }: Begun, bytes: number): Promise<void> {
  for (const before = server.uploadedBytes; server.uploadedBytes - before < bytes; await sleep(50))
    if (child.exitCode !== null) throw new Error(`it has ended: ${(await ended).said}`);
}

test('behind a slow link a backup takes its time, and nothing else waits for it', async () => {
  server.bytesPerSecond = SLOW_BYTES_PER_SECOND;
  const begun = begin();
  await uploading(begun, FILE_BYTES / 4);
  const { call } = whole.service();
  for (let number = 0; number < 20; number += 1) {
    const began = performance.now();
    const { id } = await call('POST', '/v2/volumes', { name: `made-${number}`, size_gb: 1 });
    await call('DELETE', `/v2/volumes/${id}`);
    expect(performance.now() - began).toBeLessThan(ANSWERED_WITHIN_MS);
  }
  const second = whole.platform(['backup', '--no-proof'], { RESTIC_REPOSITORY: server.address });
  expect(second).toMatchObject({ code: 1, err: 'platform: another backup of this installation is being made\n' });
  expect(server.uploadedBytes).toBeLessThan(FILE_BYTES);
  expect(await begun.ended).toMatchObject({ code: 0 });
  server.bytesPerSecond = null;
});

test('one that hangs is given up with a sentence, and the next backup goes through', async () => {
  const points = restic('snapshots', '--json');
  server.hangsAfterBytes = server.uploadedBytes + FILE_BYTES / 2;
  const began = performance.now();
  const { code, said } = await begin(SHORT_STALL).ended;
  expect([code, said]).toEqual([
    1,
    expect.stringMatching(
      /restic with rest:http\S+: nothing was read or written for 4 seconds(?: \([^]*\))?\. See whether its server/,
    ),
  ]);
  expect(performance.now() - began).toBeLessThan(60_000);
  expect(journal()).toMatchObject({ point: null, error: expect.stringContaining('nothing was read or written') });
  // It hangs at the first question, too.
  expect(await begin(SHORT_STALL).ended).toMatchObject({ code: 1, said: expect.stringContaining('nothing was read') });
  server.hangsAfterBytes = Infinity;
  expect(restic('snapshots', '--json', '--no-lock')).toBe(points);
  expect(await begin().ended).toMatchObject({ code: 0 });
  expect(restic('list', 'locks').trim()).toBe('');
  expect(restic('check', '--read-data')).toContain('no errors were found');
});

test('one that refuses what is sent is given up with what it says', async () => {
  server.refusesPacks = 507;
  const { code, said } = await begin(LONGER_STALL).ended;
  server.refusesPacks = null;
  expect([code, said]).toEqual([1, expect.stringMatching(/507/)]);
});

test('where the control database crashes meanwhile, there is no backup whose files may be missing', async () => {
  const points = restic('snapshots', '--json');
  server.bytesPerSecond = SLOW_BYTES_PER_SECOND;
  const begun = begin();
  await uploading(begun, FILE_BYTES / 4);
  process.kill(backendOf(path.join(whole.data, 'postgres')), 'SIGKILL');
  const { code, said } = await begun.ended;
  expect([code, said]).toEqual([1, expect.stringContaining('the control database was restarted')]);
  expect(journal().error).toContain('files may have been removed since');
  server.bytesPerSecond = null;
  expect(restic('snapshots', '--json', '--no-lock')).toBe(points);
  expect(await begin().ended).toMatchObject({ code: 0 });
});

/** A backend of the server whose data are there: the death of one restarts all of them. */
function backendOf(directory: string): number {
  const found = fs.readdirSync('/proc').filter((name) => {
    try {
      const isOf = fs.readlinkSync(`/proc/${name}/cwd`).startsWith(directory);
      return isOf && /^postgres: \S+ \S+ .*idle/.test(fs.readFileSync(`/proc/${name}/cmdline`, 'utf8'));
    } catch {
      return false;
    }
  });
  return Number(found[0]);
}

test('a backup whose command is killed ends with it, and leaves no backup', async () => {
  const points = restic('snapshots', '--json');
  server.bytesPerSecond = SLOW_BYTES_PER_SECOND;
  const begun = begin();
  await uploading(begun, FILE_BYTES / 4);
  // Not its group: restic runs on, until it tells nobody how far it is.
  begun.child.kill('SIGKILL');
  await sleep(FILE_BYTES / (SLOW_BYTES_PER_SECOND / 1000));
  server.bytesPerSecond = null;
  expect(restic('snapshots', '--json', '--no-lock')).toBe(points);
  expect(await begin().ended).toMatchObject({ code: 0 });
});

asRoot('one that may only be read is told', async () => {
  const directory = path.join(server.directory, 'repository');
  execFileSync('mount', ['--bind', directory, directory]);
  execFileSync('mount', ['-o', 'remount,ro,bind', directory]);
  try {
    const { code, err } = whole.platform(['backup', '--no-proof'], { RESTIC_REPOSITORY: directory });
    expect([code, err]).toEqual([1, expect.stringMatching(/read-only file system/)]);
  } finally {
    execFileSync('umount', [directory]);
  }
});

test('one that has lost a file is told by the proof, with what to do', async () => {
  const packs = restic('list', 'packs', '--no-lock').trim().split('\n');
  const data = path.join(server.directory, 'repository/data');
  const largest = packs
    .map((name) => path.join(data, name.slice(0, 2), name))
    .sort((a, b) => fs.statSync(b).size - fs.statSync(a).size)[0] as string;
  fs.rmSync(largest);
  const { code, err } = whole.platform(['backup', 'prove'], {
    RESTIC_REPOSITORY: path.join(server.directory, 'repository'),
  });
  expect([code, err]).toEqual([1, expect.stringMatching(/is spoiled \(.+\): keep it, name another RESTIC_REPOSITORY/)]);
});
