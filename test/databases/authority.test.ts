// Clients verify whom they talk to: the authority from its public place, and the names of the endpoints.
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { createClient } from '@redis/client';
import mysql from 'mysql2/promise';
import pg from 'pg';
import { newAuthority } from '../../drivers/certificates/authority';
import { describeEngine, openHall, type Hall } from '../support/databases/database_hall';
import { needs } from '../support/runner/programs';
import { waitFor } from '../support/wait_for';

const run = promisify(execFile);
let hall: Hall;
let authority: string;
let stranger: string;

beforeAll(async () => {
  hall = await openHall();
  const files = hall.service.dataDir;
  [authority, stranger] = [path.join(files, 'ca.pem'), path.join(files, 'stranger.pem')];
  writeFileSync(authority, await (await fetch(`${hall.service.url}/databases/ca.pem`)).text());
  writeFileSync(stranger, (await newAuthority('Somebody else')).certificate);
}, 60_000);

afterAll(() => hall?.close(), 60_000);

/** Of the endpoints of a new database: the private one first, then the public one. */
async function addressesOf(engine: string): Promise<URL[]> {
  const { id } = await hall.create({ name: engine, engine });
  const made = await hall.call('POST', `/v2/databases/${id}/endpoints`, {
    body: { name: 'outside', access: 'public' },
  });
  const place = `/v2/databases/${id}/endpoints/${made.body.id}`;
  await waitFor(
    'the endpoint',
    async () => ((await hall.call('GET', place)).body.status === 'active' ? true : null),
    90_000,
  );
  const { body } = await hall.call('GET', `/v2/databases/${id}/credentials`);
  return body.endpoints.map(({ connection_string }: { connection_string: string }) => new URL(connection_string));
}

/** What a program says, whichever way. */
async function runClient(program: string, args: string[], env: Record<string, string> = {}): Promise<string> {
  const { PATH } = process.env;
  return run(program, args, { env: { PATH, ...env }, timeout: 60_000 }).then(
    ({ stdout }) => stdout.trim(),
    ({ stderr }: { stderr: string }) => stderr,
  );
}

const clientTest = (program: string): jest.It => needs(program).test;

describe('the authority', () => {
  const ask = (init: RequestInit = {}): Promise<Response> => fetch(`${hall.service.url}/databases/ca.pem`, init);

  it('is fetched without a key, before there is a database, and is the same every time', async () => {
    const answer = await ask();
    expect([answer.status, answer.headers.get('content-type'), answer.headers.get('cache-control')]).toEqual([
      200,
      'application/x-pem-file',
      'public, max-age=3600',
    ]);
    const text = await answer.text();
    expect(text).toMatch(/^-----BEGIN CERTIFICATE-----\n[^]*-----END CERTIFICATE-----\n$/);
    expect(await (await ask()).text()).toBe(text);
    const [{ certificate }] = (await hall.service.sql<{ certificate: string }>(
      `select certificate from authorities where id = 'databases'`,
    )) as [{ certificate: string }];
    expect(text.trim()).toBe(certificate.trim());
  });

  it('answers HEAD and If-None-Match without a body', async () => {
    const head = await ask({ method: 'HEAD' });
    const etag = head.headers.get('etag') as string;
    expect([head.status, head.headers.get('content-type'), await head.text()]).toEqual([
      200,
      'application/x-pem-file',
      '',
    ]);
    const again = await ask({ headers: { 'If-None-Match': etag, 'Cache-Control': 'max-age=0' } });
    expect([again.status, again.headers.get('etag'), await again.text()]).toEqual([304, etag, '']);
  });
});

describeEngine('postgresql', () => {
  let addresses: URL[];
  beforeAll(async () => void (addresses = await addressesOf('postgresql')), 120_000);

  /** The name of the endpoint is verified; the way to it is that of this host. */
  function ask(address: URL, file: string, host = address.hostname): Promise<string> {
    const words =
      `host=${host} hostaddr=127.0.0.1 port=${address.port} dbname=app user=${address.username} ` +
      `sslmode=verify-full sslrootcert=${file}`;
    return runClient('psql', ['-XAtc', 'select ssl from pg_stat_ssl where pid = pg_backend_pid()', words], {
      PGPASSWORD: address.password,
    });
  }

  clientTest('psql')(
    'psql verifies private and public endpoints (needs psql)',
    async () => {
      expect(addresses.map(({ hostname, search }) => [hostname, search])).toEqual([
        ['127.0.0.1', '?sslmode=require'],
        ['ingress.localhost', '?sslmode=require'],
      ]);
      for (const address of addresses) expect(await ask(address, authority)).toBe('t');
      const [address] = addresses as [URL];
      expect(
        await runClient('psql', [
          '-XAtc',
          'select 1',
          `${address}`.replace('sslmode=require', `sslmode=verify-full&sslrootcert=${authority}`),
        ]),
      ).toBe('1');
      expect(await ask(address, stranger)).toMatch(/certificate verify failed/);
      expect(await ask(address, authority, 'database.example.com')).toMatch(/does not match host name/);
    },
    60_000,
  );

  it('pg takes the authority from the address', async () => {
    const client = (file: string): pg.Client =>
      new pg.Client({ connectionString: `${addresses[0]}&sslrootcert=${file}`, connectionTimeoutMillis: 60_000 });
    const trusting = client(authority);
    await trusting.connect();
    expect((await trusting.query('select ssl from pg_stat_ssl where pid = pg_backend_pid()')).rows).toEqual([
      { ssl: true },
    ]);
    await trusting.end();
    await expect(client(stranger).connect()).rejects.toThrow(/certificate/);
  }, 60_000);
});

describeEngine('redis', () => {
  let address: URL;
  beforeAll(async () => void ([address] = (await addressesOf('redis')) as [URL]), 120_000);

  clientTest('redis-cli')(
    'redis-cli verifies the server (needs redis-cli)',
    async () => {
      const ask = (file: string): Promise<string> =>
        runClient('redis-cli', ['-u', `${address}`, '--cacert', file, 'PING'], {});
      expect(await ask(authority)).toBe('PONG');
      expect(await ask(stranger)).toMatch(/certificate verify failed/);
    },
    60_000,
  );

  it('@redis/client verifies the server and its name', async () => {
    const client = createClient({
      url: `${address}`,
      socket: { tls: true, ca: readText(authority), reconnectStrategy: false, connectTimeout: 60_000 },
    });
    client.on('error', () => {});
    await client.connect();
    expect(await client.sendCommand(['PING'])).toBe('PONG');
    client.destroy();
    const doubting = createClient({
      url: `${address}`,
      socket: { tls: true, ca: readText(stranger), reconnectStrategy: false, connectTimeout: 60_000 },
    });
    doubting.on('error', () => {});
    await expect(doubting.connect()).rejects.toThrow(/certificate/);
  }, 60_000);
});

describeEngine('mariadb', () => {
  let address: URL;
  beforeAll(async () => void ([address] = (await addressesOf('mariadb')) as [URL]), 120_000);

  clientTest('mariadb')(
    'the client mariadb verifies the server and its name (needs mariadb)',
    async () => {
      const ask = (file: string): Promise<string> =>
        runClient(
          'mariadb',
          [
            '--no-defaults',
            '--host',
            address.hostname,
            '--port',
            address.port,
            '--user',
            address.username,
            '--ssl-ca',
            file,
            '--ssl-verify-server-cert',
            '-BNe',
            'select 1',
            'app',
          ],
          { MYSQL_PWD: address.password },
        );
      expect(await ask(authority)).toBe('1');
      expect(await ask(stranger)).toMatch(/certificate/i);
    },
    60_000,
  );

  it('mysql2 verifies the server and its name', async () => {
    const place = {
      host: address.hostname,
      port: Number(address.port),
      user: address.username,
      password: address.password,
      database: 'app',
      connectTimeout: 60_000,
    };
    const client = await mysql.createConnection({ ...place, ssl: { ca: readText(authority), verifyIdentity: true } });
    expect((await client.query('select 1 as one'))[0]).toEqual([{ one: 1 }]);
    await client.end();
    await expect(
      mysql.createConnection({ ...place, ssl: { ca: readText(stranger), verifyIdentity: true } }),
    ).rejects.toThrow(/certificate/);
  }, 60_000);
});

function readText(file: string): string {
  return readFileSync(file, 'utf8');
}
