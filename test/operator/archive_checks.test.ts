// Archives are read beside the API: in processes of their own, few at a time, and each account in its turn.
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { allProcesses, argumentsOf, descendants, signalProcess } from '../../core/process/processes';
import { limits } from '../../core/limits';
import { Problem } from '../../core/errors';
import { openArchiveChecks } from '../../server/http/archive_checks';
import { create, filesOf, get, newApplication, put, useUploads } from '../support/deployments/source_uploads';
import { until } from '../support/runner/workshop';

useUploads();

/** Ids of the processes that read archives now. */
const readers = (): number[] =>
  descendants(allProcesses(), process.pid)
    .map(({ pid }) => pid)
    .filter((pid) => argumentsOf(pid).some((argument) => argument.includes('/archive/process/process')));

/** A tar of empty files, which takes a while to be read. */
function emptyFiles(count: number): Buffer {
  const blocks = Array.from({ length: count }, (_, n) => {
    const header = Buffer.alloc(512);
    header.write(`f${n}`, 0);
    header.write('0000644\0', 100);
    header.write('00000000000\0', 124);
    header.write('00000000000\0', 136);
    header.write('        0', 148);
    header.write('ustar\x0000', 257);
    const sum = header.reduce((total, byte) => total + byte, 0);
    header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
    return header;
  });
  return gzipSync(Buffer.concat([...blocks, Buffer.alloc(1024)]));
}

test('one whose process is killed is sent again', async () => {
  const archive = emptyFiles(30_000);
  const { body } = await create();
  const sent = put(body.upload_url, archive);
  await until('its process runs', async () => readers().length === 1);
  for (const pid of readers()) signalProcess(pid, 'SIGKILL');
  expect(await sent).toMatchObject({ status: 503, body: { retryable: true } });
  expect([await get(body.id), filesOf(body.id)]).toMatchObject([{ status: 'waiting', status_reason: null }, []]);
  expect((await put(body.upload_url, archive)).status).toBe(200);
}, 120_000);

test('an archive of very many entries is read in another process, one of an account at a time', async () => {
  const archive = emptyFiles(30_000);
  const uploads = await Promise.all([1, 2, 3].map(async () => (await create({}, await newApplication())).body));
  const sent = Promise.all(uploads.map(({ upload_url }) => put(upload_url, archive)));
  let [most, isOver] = [0, false];
  void sent.finally(() => (isOver = true));
  for (; !isOver; await sleep(5)) most = Math.max(most, readers().length);
  expect((await sent).map(({ status }) => status)).toEqual([200, 200, 200]);
  expect(most).toBe(1);
  expect(readers()).toEqual([]);
}, 120_000);

describe('checks', () => {
  const MINUTE_MS = 60_000;

  /** Checks that end when they are told to. */
  function opened() {
    let now = 0;
    const checks = openArchiveChecks(() => now);
    const order: string[] = [];
    const ends: (() => void)[] = [];
    return {
      checks,
      order,
      add: (account: string) =>
        checks.run(account, () => {
          order.push(account);
          return new Promise<void>((end) => ends.push(end));
        }),
      async pass(ms: number) {
        now += ms;
        ends.shift()?.();
        await sleep(0);
      },
    };
  }

  test('run two at a time, and those of the account that has used least come first', async () => {
    const { order, add, pass } = opened();
    for (const account of ['a', 'a', 'a', 'b', 'b', 'c']) void add(account);
    await sleep(0);
    expect(order).toEqual(['a', 'b']);
    await pass(5_000);
    expect(order).toEqual(['a', 'b', 'c']);
    await pass(1_000);
    await pass(1_000);
    await pass(0);
    await pass(0);
    expect(order.toSorted()).toEqual(['a', 'a', 'a', 'b', 'b', 'c']);
  });

  test('whose client has gone leave the queue', async () => {
    const { checks, order, add, pass } = opened();
    for (const account of ['a', 'b']) void add(account);
    const client = new AbortController();
    const run = async (): Promise<void> => void order.push('gone');
    const waiting = checks.run('c', run, client.signal);
    void add('d');
    client.abort();
    await expect(waiting).rejects.toMatchObject({ code: 'service_unavailable' });
    await expect(checks.run('c', run, client.signal)).rejects.toMatchObject({ code: 'service_unavailable' });
    await pass(1_000);
    expect(order).toEqual(['a', 'b', 'd']);
  });

  test('of an account that has used up its time are refused for a while', async () => {
    const { checks, add, pass } = opened();
    void add('a');
    await sleep(0);
    await pass(limits.archiveCheckSeconds * 1000);
    expect(() => checks.requireTime('b')).not.toThrow();
    const refusal = ((): unknown => {
      try {
        return checks.requireTime('a');
      } catch (error) {
        return error;
      }
    })();
    expect(refusal).toBeInstanceOf(Problem);
    expect(refusal).toMatchObject({ code: 'rate_limited', headers: { 'Retry-After': '60' } });
    await pass(MINUTE_MS);
    expect(() => checks.requireTime('a')).not.toThrow();
  });
});
