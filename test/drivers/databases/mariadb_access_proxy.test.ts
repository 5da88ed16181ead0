// Public endpoints of MariaDB take TLS only, though clients of this host may choose. 127.0.0.2 stands for an address of
// the host that is reached from elsewhere.
import { readFileSync, writeFileSync } from 'node:fs';
import { connect as connectPlain } from 'node:net';
import { createConnection } from 'mysql2/promise';
import type { DatabaseServer } from '../../../drivers/database';
import { hostFacts } from '../../../drivers/host';
import { ctx, openServerTrial, settle, specOf } from '../../support/databases/database_server';
import { mariadbServers, type Servers } from '../../support/databases/hosted_servers';
import { describeMariadb } from '../../support/databases/mariadb_trial';
import { until, type Trial } from '../../support/builds/runtime';
import { fileNeeds } from '../../support/runner/programs';

fileNeeds('openssl');

jest.setTimeout(60_000);

describeMariadb('mariadb from elsewhere', () => {
  let trial: Trial;
  let driver: Servers;
  let spec: DatabaseServer;
  beforeAll(async () => {
    trial = await openServerTrial();
    const found = (await hostFacts()).mariadb;
    const publicAddresses = ['127.0.0.2'];
    driver = mariadbServers({ runtime: trial.runtime, directory: `${trial.root}/databases`, found, publicAddresses });
    spec = specOf('mariadb', found[0]!.series, 18034, { tenant: 34, allowed_sources: ['127.0.0.3/32'] });
    await settle(driver, spec);
    await until(async () => (await ask('127.0.0.2', { ca: spec.tls.certificate })) !== 'ECONNREFUSED');
  });
  afterAll(async () => {
    await driver.remove(spec.id, ctx());
    expect(await trial.runtime.list()).toEqual([]);
    await trial.close();
    expect(trial.errors).toEqual([]);
  });

  /** Which cipher a client has, or why it has no connection. */
  async function ask(host: string, ssl?: { ca: string }): Promise<string | undefined> {
    const stream = connectPlain({ port: spec.port, host, localAddress: '127.0.0.3' });
    const client = await createConnection({
      stream,
      user: 'app',
      password: spec.users[0]!.password,
      ...(ssl && { ssl }),
      connectTimeout: 3_000,
    }).catch((error: NodeJS.ErrnoException) => error);
    if (client instanceof Error) return client.code;
    const [rows] = await client.query(`SHOW SESSION STATUS LIKE 'Ssl_cipher'`);
    client.destroy();
    return (rows as { Value: string }[])[0]?.Value;
  }

  /** Sends bytes as they are, and reads what is answered after the greeting. */
  async function answerTo(...parts: Buffer[]): Promise<Buffer> {
    const socket = connectPlain({ port: spec.port, host: '127.0.0.2', localAddress: '127.0.0.3' });
    const heard: Buffer[] = [];
    socket.on('error', () => undefined).on('data', (bytes: Buffer) => heard.push(bytes));
    await until(() => heard.length > 0);
    heard.length = 0;
    for (const part of parts) await new Promise((sent) => socket.write(part, sent));
    await until(() => socket.closed, 15_000);
    return Buffer.concat(heard);
  }

  const noTls = (code: unknown) => expect(code).toBe('ER_SECURE_TRANSPORT_REQUIRED');

  test('with TLS a client comes in, without it none does', async () => {
    expect(await ask('127.0.0.2', { ca: spec.tls.certificate })).toMatch(/^(TLS_|ECDHE)/);
    noTls(await ask('127.0.0.2'));
    expect(await ask('127.0.0.1')).toBe('');
  });

  test('what says that it is TLS and is none ends, in whatever pieces it comes', async () => {
    // The first packet of a client without CLIENT_SSL, byte by byte, and with it, followed by a plain login.
    const login = Buffer.concat([Buffer.from([32, 0, 0, 1, 0x05, 0xa2, 0, 0]), Buffer.alloc(28)]);
    const refused = await answerTo(...[...login].map((byte) => Buffer.from([byte])));
    expect([refused[3], refused[4], refused.readUInt16LE(5)]).toEqual([2, 0xff, 3159]);
    expect(refused.subarray(7).toString()).toBe('#08004Connections to this address must use TLS.');
    login[5]! |= 8;
    const plain = Buffer.concat([
      Buffer.from([40, 0, 0, 2, 0x05, 0xa2, 0, 0]),
      Buffer.alloc(28),
      Buffer.from('app\0\0'),
    ]);
    expect((await answerTo(login, plain)).includes('Welcome')).toBe(false);
    // Shorter than what is looked at: the server ends it.
    expect(await answerTo(Buffer.from([1, 0, 0, 1, 5]))).toBeDefined();
  });

  test('a program of an earlier version, which required no TLS, is replaced', async () => {
    const conf = `${trial.root}/databases/${spec.id}`;
    const target = noteFiles(conf).target;
    expect(JSON.parse(readFileSync(target, 'utf8'))).toContain('"tlsRequiredIn":"mysql"');
    const before = (await trial.runtime.find(`${spec.id}.proxy`))!.pid;
    writeFileSync(target, JSON.stringify('{"address":"127.0.0.1"}'));
    writeFileSync(noteFiles(conf).rules, JSON.stringify('of before'));
    await settle(driver, spec);
    expect((await trial.runtime.find(`${spec.id}.proxy`))!.pid).not.toBe(before);
    await until(async () => (await ask('127.0.0.2')) !== 'ECONNREFUSED');
    noTls(await ask('127.0.0.2'));
  });
});

function noteFiles(directory: string): { target: string; rules: string } {
  return { target: `${directory}/access_proxy_target.json`, rules: `${directory}/access_proxy.json` };
}
