// What programs of others expect of a server: a password without a user, commands that they send when they start, and
// events of keys.
import { spawnSync } from 'node:child_process';
import { createClient } from '@redis/client';
import type { DatabaseServer } from '../../../drivers/database';
import { hostFacts } from '../../../drivers/host';
import { serverDirectoryOf } from '../../../drivers/hosted_server/server_directory';
import { ctx, openServerTrial, settle, specOf, removeServers } from '../../support/databases/database_server';
import { redisServers, type Servers } from '../../support/databases/hosted_servers';
import { connectTenant, tenantAnswers, type TenantClient } from '../../support/databases/redis_client';
import { until, type Trial } from '../../support/builds/runtime';
import { fileNeeds } from '../../support/runner/programs';

fileNeeds('openssl');

const engines = (['redis', 'valkey'] as const).filter((engine) => engine === 'redis' || has('valkey-server'));
const there = has('redis-server') || process.env.CI !== undefined;
const describeServer = there
  ? describe.each(engines)
  : describe.skip.each(engines.map((engine) => `${engine} (redis-server is not installed)`));

const wrong = [expect.stringMatching(/^WRONGPASS/)];
const refused = expect.stringMatching(/^NOPERM/) as unknown;

jest.setTimeout(60_000);

describeServer('%s', (engineName) => {
  const engine = engineName as 'redis' | 'valkey';
  let trial: Trial;
  let driver: Servers;
  let spec: DatabaseServer;
  const directory = (): string => `${trial.root}/databases`;
  beforeAll(async () => {
    trial = await openServerTrial();
    const found = (await hostFacts())[engine];
    driver = redisServers({
      ...{ runtime: trial.runtime, directory: directory(), found, engine, disks: trial.disks },
    });
    spec = specOf(engine, found[0]!.series, 18061, {
      users: [
        { username: 'app', password: 'first-word', access: 'admin' },
        { username: 'writer', password: 'w-word', access: 'read_write' },
        { username: 'reader', password: 'r-word', access: 'read_only' },
      ],
    });
    await settle(driver, spec);
  });
  afterAll(async () => {
    await removeServers(driver);
    await trial.close();
    expect(trial.errors).toEqual([]);
  });

  const alone = (password: string, ...commands: string[][]): Promise<unknown[]> =>
    tenantAnswers(spec, { password }, commands);
  const as = (username: string, password: string, ...commands: string[][]): Promise<unknown[]> =>
    tenantAnswers(spec, { username, password }, commands);
  const rotated = (password: string, previous_password?: string): DatabaseServer => ({
    ...spec,
    users: [{ username: 'app', password, access: 'admin', previous_password }, ...spec.users.slice(1)],
  });
  async function platform(...words: string[]): Promise<unknown> {
    const client = createClient({
      ...{ username: `platform_${spec.id}`, password: spec.admin_password, disableClientInfo: true, RESP: 2 },
      socket: { path: `${serverDirectoryOf({ directory: directory() }, spec.id).data}/admin.sock`, tls: false },
    });
    await client.connect();
    const answer = await client.sendCommand(words);
    client.destroy();
    return answer;
  }

  test('the password of the first user is enough, alone or as `default`, and nothing less', async () => {
    expect(await alone('first-word', ['ACL', 'WHOAMI'], ['SET', 'a', '1'])).toEqual(['default', 'OK']);
    expect(await as('default', 'first-word', ['GET', 'a'], ['CONFIG', 'GET', '*'])).toEqual(['1', refused]);
    expect(await as('app', 'first-word', ['ACL', 'WHOAMI'])).toEqual(['app']);
    for (const password of ['w-word', 'r-word', 'wrong', spec.admin_password])
      expect(await alone(password)).toEqual(wrong);
    expect(await as('default', '')).toEqual([expect.stringMatching(/WRONGPASS|NOAUTH/)]);
  });

  test('during a rotation both passwords are enough; afterwards the old one and its sessions end', async () => {
    const before = await connectTenant(spec, 'first-word', undefined);
    spec = rotated('second-word', 'first-word');
    await settle(driver, spec);
    expect(await before.sendCommand(['PING'])).toBe('PONG');
    expect([await alone('first-word', ['PING']), await alone('second-word', ['PING'])]).toEqual([['PONG'], ['PONG']]);
    const since = await connectTenant(spec, 'second-word', undefined);
    spec = rotated('second-word');
    await settle(driver, spec);
    expect(await since.sendCommand(['PING'])).toBe('PONG');
    since.destroy();
    await hasEnded(before);
    expect([await alone('first-word'), await alone('second-word', ['PING'])]).toEqual([wrong, ['PONG']]);
    spec = rotated('third-word');
    await settle(driver, spec);
    expect([await alone('second-word'), await alone('third-word', ['PING'])]).toEqual([wrong, ['PONG']]);
  });

  test('a name that a client gives itself does not keep its session beyond its password', async () => {
    const password = spec.users[0]!.password;
    const hidden = await connectTenant(spec, password, 'app');
    await hidden.sendCommand(['CLIENT', 'SETNAME', 'x=user=other']);
    await hidden.sendCommand(['CLIENT', 'SETINFO', 'LIB-NAME', 'user=other']).catch(() => undefined);
    spec = rotated('fourth-word', password);
    await settle(driver, spec);
    spec = rotated('fourth-word');
    await settle(driver, spec);
    await hasEnded(hidden);
  });

  test('a server without users lets nobody in, and one that was started before is brought to the same', async () => {
    const nobody = { ...spec, users: [] };
    await settle(driver, nobody);
    expect(await alone('', ['PING'])).toEqual([expect.stringMatching(/WRONGPASS|NOAUTH/)]);
    expect(await alone('fourth-word')).toEqual(wrong);
    await settle(driver, { ...nobody, running: false });
    await settle(driver, nobody);
    expect(await alone('fourth-word')).toEqual(wrong);
    await settle(driver, spec);
    expect(await alone('fourth-word', ['PING'])).toEqual(['PONG']);
  });

  test('a replica takes the same password alone', async () => {
    const { id: server_id, port, admin_password: password, tls, users } = spec;
    const replica_of = { server_id, port, password };
    const replica = specOf(engine, spec.version, 18062, { id: `rep_${engine}`, tenant: 14, tls, users, replica_of });
    await settle(driver, replica);
    await until(async () => (await tenantAnswers(replica, { password: 'fourth-word' }, [['GET', 'a']]))[0] === '1');
    await driver.remove(replica.id, ctx());
  });

  test('commands that programs send when they start, by access', async () => {
    const commands = [
      ...[['ROLE'], ['LASTSAVE'], ['CLIENT', 'LIST'], ['MODULE', 'LIST'], ['LATENCY', 'LATEST'], ['SLOWLOG', 'LEN']],
      ...[
        ['CONFIG', 'GET', 'notify-keyspace-events'],
        ['CONFIG', 'SET', 'notify-keyspace-events', 'Egx'],
      ],
      ...[
        ['CLIENT', 'KILL', 'TYPE', 'normal'],
        ['MODULE', 'LOAD', '/x.so'],
        ['CLIENT', 'PAUSE', '1'],
      ],
      ['CLIENT', 'SETNAME', 'worker'],
    ];
    const answers = async (username: string, password: string): Promise<boolean[]> =>
      (await as(username, password, ...commands)).map((answer) => !/^NOPERM|command not allowed/.test(String(answer)));
    const [yes, no] = [true, false];
    expect(await answers('app', 'fourth-word')).toEqual([yes, yes, yes, yes, yes, yes, no, no, no, no, no, yes]);
    expect(await answers('writer', 'w-word')).toEqual([yes, yes, no, no, no, no, no, no, no, no, no, yes]);
    expect(await answers('reader', 'r-word')).toEqual([yes, yes, no, no, no, no, no, no, no, no, no, yes]);
    const [role] = (await alone('fourth-word', ['ROLE'])) as [string[]];
    expect(role[0]).toBe('master');
  });

  test('keys that expire or are deleted are told, also by a server that was started without', async () => {
    const pid = (await trial.runtime.find(`${spec.id}.server`))!.pid;
    await platform('CONFIG', 'SET', 'notify-keyspace-events', '', 'sanitize-dump-payload', 'no');
    expect((await driver.observe(spec, ctx())).differs).toBe('settings that need no restart');
    await settle(driver, spec);
    expect((await trial.runtime.find(`${spec.id}.server`))!.pid).toBe(pid);
    const heard: string[] = [];
    const listener = (await connectTenant(spec, 'r-word', 'reader')) as TenantClient;
    await listener.pSubscribe('__keyevent@*__:*', (key, channel) => void heard.push(`${channel} ${key}`));
    await alone('fourth-word', ['SET', 'short', '1', 'PX', '30'], ['SET', 'gone', '1'], ['DEL', 'gone']);
    await until(() => Promise.resolve(heard.some((one) => one.endsWith(':expired short'))), 5_000);
    expect(heard).toContain('__keyevent@0__:del gone');
    listener.destroy();
  });

  test('the smallest package takes a value of 20 MB, and gives it back', async () => {
    const large = Buffer.alloc(20 << 20, 'platform');
    const [set, length, part] = await tenantAnswers(spec, { password: 'fourth-word' }, [
      ['SET', 'large', large],
      ['STRLEN', 'large'],
      ['GET', 'large'],
    ]);
    expect([set, length]).toEqual(['OK', large.length]);
    expect(Buffer.from(String(part)).equals(large)).toBe(true);
    await alone('fourth-word', ['DEL', 'large']);
  });

  test('a payload that would reach the memory of the server is refused', async () => {
    const list = ['RPUSH', 'list', 'a', 'b'];
    const client = await connectTenant(spec, 'fourth-word', undefined);
    await client.sendCommand(['HSET', 'hash', 'field', 'value']);
    await client.sendCommand(list);
    const payload = Buffer.from((await dumpOf(client, 'hash')) as never);
    const end = payload.subarray(-10, -8);
    expect(checked(payload.subarray(0, -10), end).equals(payload)).toBe(true);
    const hostile = Buffer.from(payload.subarray(0, -10));
    // The first entry of the list pack says that it is longer than what follows.
    hostile[hostile.indexOf('field') - 1] = 0xbf;
    const [answer] = await tenantAnswers(spec, { password: 'fourth-word' }, [
      ['RESTORE', 'copy', '0', checked(hostile, end)],
    ]);
    expect(answer).toMatch(/Bad data format/);
    client.destroy();
  });
});

async function dumpOf(client: TenantClient, key: string): Promise<unknown> {
  const { RESP_TYPES } = await import('@redis/client');
  return client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer }).sendCommand(['DUMP', key]);
}

/** A payload of DUMP with its checksum, CRC-64 of Jones (src/crc64.c of the server). */
function checked(content: Buffer, version: Buffer): Buffer {
  const body = Buffer.concat([content, version]);
  let crc = 0n;
  for (const byte of body) {
    crc ^= BigInt(byte);
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 1n ? (crc >> 1n) ^ 0x95ac9329ac4bc9b5n : crc >> 1n;
  }
  const sum = Buffer.alloc(8);
  sum.writeBigUInt64LE(crc);
  return Buffer.concat([body, sum]);
}

async function hasEnded(client: TenantClient): Promise<void> {
  await until(() => Promise.resolve(!client.isOpen), 2_000).catch(() => undefined);
  await expect(client.sendCommand(['PING'])).rejects.toThrow();
  if (client.isOpen) client.destroy();
}

function has(program: string): boolean {
  return spawnSync(program, ['--version']).status === 0;
}
