/** @tier heavy @quarter 1 @covers server/program.ts server/first_boot.ts core/config.ts */
// What keeps the program from starting.
import { chmodSync, mkdtempSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import path from 'node:path';
import pg from 'pg';
import { unprivileged } from '../support/processes/processes';
import { startProgram } from '../support/processes/program';
import { database, directory, home, setUpStarts } from '../support/processes/start_cases';

setUpStarts();

describe('what keeps it from starting: one line, exit code 1', () => {
  const ROLE = `stranger_${process.pid}`;
  let url: string;
  let empty: string;
  let port: number;
  const holder = createServer();

  beforeAll(async () => {
    [url, empty] = [await database(false), await database(true)];
    await new Promise<void>((resolve) => holder.listen(0, '127.0.0.1', resolve));
    port = (holder.address() as AddressInfo).port;
  });
  afterAll(async () => {
    await ask(empty, `drop role if exists ${ROLE}`);
    await new Promise((resolve) => holder.close(resolve));
  });

  async function newer(): Promise<string> {
    const made = await database(false);
    await ask(
      made,
      `insert into knex_migrations (name, batch, migration_time) values ('9999_contract_9998_future', 99, now())`,
    );
    return made;
  }

  async function ask(database: string, text: string): Promise<void> {
    const client = new pg.Client({ connectionString: database });
    await client.connect();
    await client.query(text).finally(() => client.end());
  }

  /** Somebody who may connect and nothing else. */
  async function stranger(): Promise<string> {
    await ask(empty, `create role ${ROLE} login password 'pw-of-someone'`);
    return Object.assign(new URL(empty), { username: ROLE, password: 'pw-of-someone' }).href;
  }

  /** A directory for PATH whose nft(8) fails, as on a kernel without it. */
  function withoutPacketFilter(): string {
    const programs = mkdtempSync(path.join(home, 'programs-'));
    writeFileSync(path.join(programs, 'nft'), '#!/bin/sh\necho no packet filter >&2\nexit 1\n', { mode: 0o755 });
    return programs;
  }

  /** A data directory whose place for volumes is a file. */
  function withFile(): string {
    const data = mkdtempSync(path.join(home, 'data-'));
    writeFileSync(path.join(data, 'volumes'), '');
    return data;
  }

  const nowhere = '/proc/platform';
  const cases: [string, RegExp, () => Promise<Record<string, string>> | Record<string, string>, string[]?][] = [
    ['a taken port', /PORT|listen on 127.0.0.1:\d+.*port is taken/, () => ({ PORT: String(port) })],
    ['a taken admin port', /ADMIN_PORT.*port is taken/, () => ({ ADMIN_PORT: String(port) })],
    ['an address of another machine', /192\.0\.2\.1.*not one of this machine/, () => ({ HOST: '192.0.2.1' })],
    ['a directory that can not be made', /\/proc\/platform/, () => ({ PLATFORM_DATA_DIR: nowhere })],
    [
      'a directory that can not be made, for the embedded database',
      /\/proc\/platform/,
      () => ({ DATABASE_URL: '', PLATFORM_DATA_DIR: nowhere }),
    ],
    [
      'a database that is not there',
      /database does not answer: .*ECONNREFUSED/,
      () => ({ DATABASE_URL: 'postgres://someone:pw-of-someone@127.0.0.1:1/x' }),
    ],
    [
      'a name that nobody has',
      /database does not answer: .*nowhere\.invalid/,
      () => ({ DATABASE_URL: 'postgres://someone:pw-of-someone@nowhere.invalid/x' }),
    ],
    [
      'a wrong password',
      /does not answer: password authentication failed/,
      () => ({ DATABASE_URL: Object.assign(new URL(url), { password: 'pw-of-someone' }).href }),
    ],
    [
      'a user without rights',
      /can not be brought up to date: .*permission denied/,
      async () => ({ DATABASE_URL: await stranger() }),
    ],
    [
      'a database that nobody made',
      /does not answer: database "nothing" does not exist/,
      () => ({ DATABASE_URL: Object.assign(new URL(url), { pathname: '/nothing' }).href }),
    ],
    [
      'a newer schema',
      /newer than this program supports.*9999_contract_9998_future/,
      async () => ({ DATABASE_URL: await newer() }),
    ],
    ['a malformed setting', /DATABASE_POOL_SIZE is malformed: "many"/, () => ({ DATABASE_POOL_SIZE: 'many' })],
    ['a malformed secret', /PLATFORM_SECRET_KEY is malformed/, () => ({ PLATFORM_SECRET_KEY: 'pw-of-someone' })],
    ['an unknown setting', /PLATFORM_DATADIR is not a setting/, () => ({ PLATFORM_DATADIR: '/x' })],
    ['a folder for volumes that can not be made', /volume driver .*volumes/, () => ({ PLATFORM_DATA_DIR: withFile() })],
    [
      'data at a removed setting',
      /DATABASE_DIR is not a setting any more, and .* has data/,
      () => ({ DATABASE_DIR: home }),
    ],
    [
      'networks that this host can not make',
      /NETWORK is isolated, but this host cannot give .* networks of their own: .*(no packet filter|ip: not found)/,
      () => ({ NETWORK: 'isolated', PATH: `${withoutPacketFilter()}:${process.env.PATH}` }),
    ],
    ['an unknown argument', /--port/, () => ({}), ['--port']],
  ];

  test.each(cases)('%s', async (...[name, line, given, words = []]) => {
    const program = startProgram(
      { DATABASE_URL: url, PLATFORM_DATA_DIR: directory(`refused-${name.replace(/\W/g, '')}`), ...(await given()) },
      { words },
    );
    expect([await program.ended, program.err()]).toEqual([1, expect.stringMatching(/^platform-api: [^\n]+\n$/)]);
    expect(program.err()).toMatch(line);
    expect(program.err() + program.out()).not.toContain('pw-of-someone');
    expect(program.out()).not.toContain('Welcome');
  });

  test('a volume driver that can not work here', async () => {
    const dir = mkdtempSync(path.join(home, 'plain-'));
    chmodSync(dir, 0o777);
    // Nobody may mount.
    const program = startProgram(
      { DATABASE_URL: url, PLATFORM_DATA_DIR: dir, VOLUME_DRIVER: 'loop_image' },
      { user: unprivileged() },
    );
    expect([await program.ended, program.err()]).toEqual([
      1,
      expect.stringMatching(/^platform-api: [^\n]*loop_image[^\n]+\n$/),
    ]);
  });

  test('a directory that is not ours', async () => {
    const closed = mkdtempSync(path.join(home, 'closed-'));
    chmodSync(closed, 0o555);
    const program = startProgram(
      { DATABASE_URL: url, PLATFORM_DATA_DIR: path.join(closed, 'data') },
      { user: unprivileged() },
    );
    expect([await program.ended, program.err()]).toEqual([
      1,
      expect.stringMatching(/^platform-api: [^\n]*closed-[^\n]+\n$/),
    ]);
  });
});
