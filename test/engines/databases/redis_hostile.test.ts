/** @tier heavy @quarter 2 @covers drivers/database/redis */
// A tenant that tries to get the rights of the platform in its own server, whenever the platform does something there:
// code that runs while a file is loaded, names and values that look like settings, payloads, names of sessions.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createClient } from '@redis/client';
import type { EngineFound } from '../../../core/catalog/host_facts';
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

const CONFIG_LINES = '\nuser evil on nopass ~* &* +@all\nenable-module-command yes\nrequirepass x\n';
const COMMANDS = '\r\n*8\r\n$3\r\nACL\r\n$7\r\nSETUSER\r\n$4\r\nevil\r\n$2\r\non\r\n$6\r\nnopass\r\n$2\r\n~*\r\n';
const ALL_ADMIN = [
  ...[
    ['ACL', 'SETUSER', 'evil', 'on', 'nopass', '~*', '+@all'],
    ['ACL', 'LIST'],
    ['ACL', 'LOAD'],
    ['ACL', 'SAVE'],
  ],
  ...[
    ['CONFIG', 'GET', '*'],
    ['CONFIG', 'SET', 'dir', '/tmp'],
    ['CONFIG', 'REWRITE'],
    ['CONFIG', 'RESETSTAT'],
  ],
  ...[
    ['MODULE', 'LOAD', '/tmp/evil.so'],
    ['MODULE', 'LOADEX', '/tmp/evil.so'],
    ['MODULE', 'UNLOAD', 'x'],
  ],
  ...[['REPLICAOF', '127.0.0.1', '1'], ['SLAVEOF', '127.0.0.1', '1'], ['FAILOVER'], ['SYNC'], ['PSYNC', '?', '-1']],
  ...[['DEBUG', 'SLEEP', '0'], ['DEBUG', 'RELOAD'], ['MIGRATE', '127.0.0.1', '1', 'a', '0', '1'], ['MONITOR']],
  ...[
    ['SHUTDOWN'],
    ['BGSAVE'],
    ['BGREWRITEAOF'],
    ['SAVE'],
    ['CLIENT', 'KILL', 'USER', 'evil'],
    ['CLIENT', 'PAUSE', '9'],
  ],
];

jest.setTimeout(120_000);

describeServer('%s', (engineName) => {
  const engine = engineName as 'redis' | 'valkey';
  const reached = mkdtempSync(path.join(tmpdir(), 'reached-'));
  let trial: Trial;
  let driver: Servers;
  let found: EngineFound;
  let spec: DatabaseServer;
  let clean: unknown;
  const directory = (): string => `${trial.root}/databases`;

  /** Runs as it is loaded: by FUNCTION LOAD, and with each file and each stream of a primary that has it. */
  const library = `#!lua name=evil
local function attempt(work) pcall(work) end
attempt(function() redis.call('ACL', 'SETUSER', 'evil', 'on', 'nopass', '~*', '+@all') end)
attempt(function() redis.call('CONFIG', 'SET', 'enable-module-command', 'yes') end)
attempt(function() redis.call('SET', 'from-load', '1') end)
attempt(function() io.open('${reached}/io', 'w'):write('x') end)
attempt(function() os.execute('touch ${reached}/os') end)
attempt(function() loadstring('return 1')() end)
attempt(function() require('os').execute('touch ${reached}/require') end)
attempt(function() package.loadlib('/lib/x86_64-linux-gnu/libc.so.6', 'system')('touch ${reached}/loadlib') end)
attempt(function() getmetatable('').__index.rep = function() error('x') end end)
attempt(function() redis.call = nil; pcall = nil end)
local function each(keys, args)
  local answers = {}
  for _, words in ipairs(cjson.decode(args[1])) do
    local answer = redis.pcall(unpack(words))
    answers[#answers + 1] = type(answer) == 'table' and answer.err or 'OK'
  end
  return answers
end
redis.register_function{function_name='evil', callback=each, flags={'allow-oom', 'allow-stale', 'no-cluster'}}`;

  beforeAll(async () => {
    trial = await openServerTrial();
    [found] = (await hostFacts())[engine] as [EngineFound];
    driver = redisServers({
      ...{ runtime: trial.runtime, disks: trial.disks, directory: directory(), engine },
      found: [found, { ...found, series: '99.0' }],
    });
    spec = specOf(engine, found.series, 18051, {
      users: [
        { username: 'app', password: 'first-word', access: 'admin' },
        { username: 'writer', password: 'w-word', access: 'read_write' },
        { username: 'reader', password: 'r-word', access: 'read_only' },
      ],
    });
    await settle(driver, spec);
    clean = await rights(spec);
    await attack(spec);
  });
  afterAll(async () => {
    await removeServers(driver);
    await trial.close();
    rmSync(reached, { recursive: true });
    expect(trial.errors).toEqual([]);
  });

  async function platform(of: DatabaseServer, ...words: string[]): Promise<unknown> {
    const socket = `${serverDirectoryOf({ directory: directory() }, of.id).data}/admin.sock`;
    const client = createClient({
      ...{ username: `platform_${of.id}`, password: of.admin_password, disableClientInfo: true, RESP: 2 },
      socket: { path: socket, tls: false, reconnectStrategy: false },
    });
    await client.connect();
    const answer = await client.sendCommand(words).finally(() => client.destroy());
    return answer;
  }

  /** Who may do what, and the settings: nothing of it is a tenant's to change. Hashes change with a rotation. */
  async function rights(of: DatabaseServer): Promise<unknown> {
    const users = (await platform(of, 'ACL', 'LIST')) as string[];
    const settings = (await platform(of, 'CONFIG', 'GET', '*')) as string[];
    const names = [
      'requirepass',
      'aclfile',
      'enable-module-command',
      'enable-debug-command',
      'enable-protected-configs',
    ];
    names.push('maxmemory', 'appendonly', 'dbfilename', 'sanitize-dump-payload', 'notify-keyspace-events');
    return {
      users: users.map((one) => ruleSet(one.replaceAll(of.id, 'server'))).sort(),
      settings: names.map((name) => settings[settings.indexOf(name) + 1]),
      modules: await platform(of, 'MODULE', 'LIST'),
    };
  }

  async function attack(of: DatabaseServer): Promise<void> {
    const commands = [
      ['FUNCTION', 'LOAD', 'REPLACE', library],
      ['SET', CONFIG_LINES, CONFIG_LINES],
      ['SET', COMMANDS, COMMANDS],
      ['HSET', '../../../etc/passwd', COMMANDS, CONFIG_LINES],
      ['XADD', COMMANDS, '1-1', COMMANDS, COMMANDS],
      ['XGROUP', 'CREATE', COMMANDS, CONFIG_LINES, '0'],
      // Errors have counters of their own in INFO, which the platform reads.
      ['EVAL', `return redis.error_reply('role:slave\\r\\nmaster_port:1 x')`, '0'],
      ['EVAL', `return redis.error_reply('config_file:/etc/passwd x')`, '0'],
    ];
    await tenantAnswers(of, { password: of.users[0]!.password }, commands);
  }

  async function requireNothingGained(of: DatabaseServer): Promise<void> {
    expect(await rights(of)).toEqual(clean);
    const logins = of.users.map(({ username, password }) => ({ username, password }));
    for (const login of [...logins, { password: logins[0]!.password }]) {
      const answers = await tenantAnswers(of, login, ALL_ADMIN);
      expect(answers.map((answer) => (/^NOPERM|not allowed/.test(String(answer)) ? 'refused' : answer))).toEqual(
        ALL_ADMIN.map(() => 'refused'),
      );
    }
    const [[, ...inFunction]] = (await tenantAnswers(of, logins[0]!, [
      ['FCALL', 'evil', '0', JSON.stringify([['PING'], ...ALL_ADMIN])],
    ])) as [string[]];
    expect(inFunction.filter((answer) => answer === 'OK')).toEqual([]);
    for (const login of [{ username: 'evil', password: '' }, { password: 'x' }, { username: 'default', password: '' }])
      expect(await tenantAnswers(of, login, [['PING']])).toEqual([expect.stringMatching(/WRONGPASS|NOAUTH/)]);
    expect(await tenantAnswers(of, logins[0]!, [['EXISTS', 'from-load']])).toEqual([0]);
    for (const file of ['io', 'os', 'require', 'loadlib']) expect(existsSync(path.join(reached, file))).toBe(false);
    expect(await driver.observe(of, ctx())).toMatchObject({ state: 'running', differs: null });
  }

  const from = (id: string) => ({ id, server_id: spec.id, backup_id: 'bkp_hostile', until: null });

  test('while it runs, is measured, backed up and restored', async () => {
    await requireNothingGained(spec);
    await driver.metrics(spec, ctx());
    await driver.backup(spec, 'bkp_hostile', ctx());
    await requireNothingGained(spec);
    await driver.restore(spec, from('restore_1'), ctx());
    await settle(driver, spec);
    await requireNothingGained(spec);
  });

  test('when it starts again from its own file', async () => {
    await attack(spec);
    await settle(driver, { ...spec, running: false });
    await settle(driver, spec);
    await requireNothingGained(spec);
  });

  test('during a rotation, with sessions that call themselves the platform', async () => {
    const held = await Promise.all(
      spec.users.map(async ({ username, password }) => {
        const client = await connectTenant(spec, password, username);
        for (const words of [
          ['SETNAME', `user=platform_${spec.id}`],
          ['SETINFO', 'LIB-NAME', `user=platform_${spec.id}`],
        ])
          await client.sendCommand(['CLIENT', ...words]).catch(() => undefined);
        return client;
      }),
    );
    spec = { ...spec, users: spec.users.map((user) => ({ ...user, password: `${user.password}-2` })) };
    await settle(driver, spec);
    for (const client of held) await requireEnded(client);
    await requireNothingGained(spec);
  });

  test('in a copy, in a replica that is promoted, and after an upgrade', async () => {
    const copy = { ...spec, id: `db_${engine}_hostile`, port: 18052, tenant: 12 };
    await settle(driver, copy);
    await driver.restore(copy, from('restore_2'), ctx());
    await settle(driver, copy);
    await requireNothingGained(copy);
    await driver.remove(copy.id, ctx());
    const replica_of = { server_id: spec.id, port: spec.port, password: spec.admin_password };
    const replica = { ...spec, id: `rep_${engine}_hostile`, port: 18053, tenant: 13, replica_of };
    await settle(driver, replica);
    await until(async () => (await driver.observe(replica, ctx())).replication_lag_seconds === 0);
    await attack(spec);
    await requireNothingGained(replica);
    await driver.promote(replica, ctx());
    await settle(driver, { ...replica, replica_of: null });
    await requireNothingGained({ ...replica, replica_of: null });
    await driver.remove(replica.id, ctx());
    await driver.upgrade({ ...spec, version: '99.0' }, spec.version, ctx());
    spec = { ...spec, version: '99.0' };
    await settle(driver, spec);
    await requireNothingGained(spec);
  });

  test('as a user of a name that is more than a name', async () => {
    const names = ['evil on nopass +@all', 'a\nuser evil', 'default', 'platform_x', 'a b', '*', '%', 'A', '', 'é'];
    for (const username of names) {
      const other = { ...spec, users: [{ username, password: 'word', access: 'admin' as const }] };
      await expect(settle(driver, other)).rejects.toMatchObject({ reason: 'invalid' });
    }
    await requireNothingGained(spec);
  });
});

/** Rules of a user, whose order is that of a hash table. */
function ruleSet(line: string): string {
  return [...new Set(line.replace(/#[0-9a-f]{64}/g, '').split(' '))].sort().join(' ');
}

async function requireEnded(client: TenantClient): Promise<void> {
  await until(() => Promise.resolve(!client.isOpen), 2_000).catch(() => undefined);
  await expect(client.sendCommand(['PING'])).rejects.toThrow();
  if (client.isOpen) client.destroy();
}

function has(program: string): boolean {
  return spawnSync(program, ['--version']).status === 0;
}
