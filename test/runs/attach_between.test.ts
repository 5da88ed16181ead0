/** @tier heavy @quarter 3 @covers server/runs drivers/runtime/attachment.ts engines/ingress */
/** @user any */
// Clients of runs behind what stands between in practice: a proxy that cuts idle connections, the ingress of the
// platform; and a client of a database that answers at the other end.
import net from 'node:net';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { startDeployService, type DeployService, type TestApplication } from '../support/deployments/deploy';
import { openDatabaseWorkshop, type DatabaseWorkshop } from '../support/databases/database_hall';
import { nodeApp, webCommand } from '../support/git/repositories';
import { attach } from '../support/runs/attach';
import { runEnded, startRun } from '../support/runs/runs';
import { needs } from '../support/runner/programs';
import { waitFor } from '../support/wait_for';

/** More than the pause between pings of the server, less than the minute of common proxies. */
const IDLE_MS = 45_000;

let place: DatabaseWorkshop;
let service: DeployService;
let application: TestApplication;

beforeAll(async () => {
  place = openDatabaseWorkshop();
  service = await startDeployService(place.settings);
  application = await service.application(nodeApp('one'));
  expect((await application.deploy()).status).toBe('active');
}, 90_000);
afterAll(async () => {
  await service.clear().finally(async () => {
    for (const { id } of await service.sql<{ id: string }>('select id from databases where deleted_at is null'))
      await service.call('DELETE', `/v2/databases/${id}`);
    await waitFor('the end of all databases', async () =>
      (await service.sql('select 1 from databases')).length ? null : true,
    ).finally(() => service.close());
  });
  place.clear();
}, 90_000);

/** Passes bytes on, and cuts a connection on which none passed for a while. */
async function startIdleProxy(target: number): Promise<{ port: number; close(): void }> {
  const server = net.createServer((client) => {
    const upstream = net.connect(target, '127.0.0.1');
    const cut = (): void => void (client.destroy(), upstream.destroy());
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const)
      from.setTimeout(IDLE_MS, cut).on('error', cut).on('close', cut).pipe(to);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { port: (server.address() as AddressInfo).port, close: () => void server.close() };
}

test('a proxy that cuts idle connections does not cut a client that waits, nor one that only reads', async () => {
  const proxy = await startIdleProxy(Number(new URL(service.url).port));
  try {
    const through = { ...service, url: `http://127.0.0.1:${proxy.port}` };
    const { id } = await startRun(application, 'while read -r line; do echo "got $line"; done', { detached: false });
    const writer = await attach(through, application, id);
    const reader = await attach(through, application, id, { query: '?read_only=true' });
    expect((await writer.told('ready')).writer).toBe(true);
    // Longer than the proxy waits: pings keep both open.
    await sleep(IDLE_MS + 5_000);
    writer.type('late\n');
    for (const client of [writer, reader]) await client.shows('got late');
    writer.command({ type: 'close_stdin' });
    await Promise.all([writer.closed, reader.closed]);
    expect(await runEnded(application, id)).toMatchObject({ status: 'succeeded' });
  } finally {
    proxy.close();
  }
}, 180_000);

test('the ingress of the platform passes a terminal on, with an application before the API', async () => {
  const { port } = new URL(service.url);
  const gate = await service.application(
    webCommand('node gate.js', {
      'gate.js': `require('net').createServer((client) => {
        const api = require('net').connect(${port}, '127.0.0.1');
        client.on('error', () => api.destroy()).pipe(api).on('error', () => client.destroy()).pipe(client);
      }).listen(process.env.PORT, '127.0.0.1');`,
    }),
  );
  expect((await gate.deploy()).status).toBe('active');
  const { id } = await startRun(application, 'exec bash --norc --noprofile -i', { tty: true });
  const through = { ...service, url: `http://127.0.0.1:${service.platform.config.ingressPort}` };
  const client = await attach(through, application, id, { headers: { Host: gate.host } });
  expect(await client.told('ready')).toEqual({ type: 'ready', writer: true, tty: true });
  client.command({ type: 'resize', rows: 33, columns: 99 });
  client.type('stty size; echo size"-shown"\n');
  await client.shows('size-shown');
  expect(client.stdout()).toContain('33 99');
  client.type('exit 9\n');
  expect(await client.closed).toMatchObject({ code: 1000 });
  expect(client.controls.at(-1)).toMatchObject({ type: 'exit', code: 9 });
}, 90_000);

const { test: withPsql } = needs('psql');
withPsql(
  'psql in a run talks with the attached database, from standard input and at a terminal',
  async () => {
    const made = await service.call('POST', '/v2/databases', { body: { name: 'orders', engine: 'postgresql' } });
    await service.settle(`/v2/databases/${made.body.id}`);
    const attached = await service.call('POST', `/v2/databases/${made.body.id}/attachments`, {
      body: { application_id: application.id },
    });
    expect(attached.status).toBe(201);
    expect((await application.deploy()).status).toBe('active');

    const piped = await startRun(application, 'psql -At "$DATABASE_URL"', { detached: false });
    const client = await attach(service, application, piped.id);
    await client.told('ready');
    client.type('create table notes (text text);\n\\copy notes from stdin\nfirst\nsecond\n\\.\n');
    client.type("select string_agg(text, '+' order by text) from notes;\n");
    client.command({ type: 'close_stdin' });
    await client.closed;
    expect(client.stdout().trim().split('\n')).toEqual(['CREATE TABLE', 'COPY 2', 'first+second']);
    expect(client.stderr()).toBe('');

    const console = await startRun(application, 'PAGER=cat psql "$DATABASE_URL"', { tty: true });
    const terminal = await attach(service, application, console.id);
    await terminal.shows('=>');
    terminal.type('select count(*) as notes from notes;\n');
    await terminal.shows('(1 row)');
    terminal.type('\\q\n');
    await terminal.closed;
    expect(terminal.controls.at(-1)).toMatchObject({ type: 'exit', code: 0 });
  },
  120_000,
);
