/** @tier heavy @quarter 4 @covers engines/dns server/agents/nameserver.ts */
// `npm start` with the process that answers DNS questions: bad days change nothing.
import * as dgram from 'node:dgram';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import * as packet from 'dns-packet';
import { setTimeout as sleep } from 'node:timers/promises';
import { addressIn, queryOver, damagedQuestion, occupy } from '../../support/dns/dns_hostile';
import { startDnsParent, type DnsParent } from '../../support/dns/dns_parent';
import { freePort } from '../../support/processes/free_port';
import { processesWith, signalAll, type ProcessRow } from '../../support/processes/processes';
import { endPrograms, startProgram, type Program } from '../../support/processes/program';
import { waitFor } from '../../support/wait_for';
import { withConfig } from '../../support/config';

jest.setTimeout(180_000);

const ZONE = 'bad-days.example.com';
const CONNECTIONS = 10_000;
const DAMAGED = 20_000;
const ANSWER_WITHIN_MS = 10_000;
const DATABASE_AWAY_MS = 60_000;

const directory = mkdtempSync(path.join(tmpdir(), 'dns-bad-days-'));
// As root, PostgreSQL runs as another user, who must get through.
chmodSync(directory, 0o755);
let parent: DnsParent;
let program: Program;
let address: string;
let first: { key: string; project_id: string };
let port: number;
let settings: Record<string, string>;
let releasePort: () => Promise<void>;
let zone: { id: string };
let record: { id: string } | null = null;

beforeAll(async () => {
  port = await freePort();
  releasePort = await occupy(port);
  parent = await startDnsParent('example.com', await freePort());
  const dns = {
    ...withConfig({ dnsRoots: [parent.address], dnsResponsesPerSecond: 1_000_000 }),
    DNS_PORT: String(port),
  };
  settings = { ...dns, PLATFORM_DATA_DIR: directory };
  program = startProgram(settings);
  address = await program.ready();
  const file = path.join(directory, 'first-key.json');
  first = await waitFor('the first key', async () => JSON.parse(readFileSync(file, 'utf8')));
  zone = await call('POST', '/v2/dns_zones', { name: ZONE });
  await setAddress('192.0.2.1');
});
afterAll(async () => {
  await releasePort?.();
  program?.signal('SIGTERM');
  await program?.ended;
  await endPrograms();
  await parent?.close();
  rmSync(directory, { recursive: true, force: true });
});

async function metric(): Promise<string | undefined> {
  const admin = /"admin_port":(\d+)/.exec(program.out())?.[1];
  const metrics = await (await fetch(`http://127.0.0.1:${admin}/metrics`)).text();
  return /^platform_nameserver_up (\d)/m.exec(metrics)?.[1];
}

async function doctor(): Promise<{ status: string; detail: string }> {
  const command = startProgram(settings, { entry: 'server/operator/main.ts', words: ['doctor', '--json'] });
  await command.ended;
  const rows = (JSON.parse(command.out()) as { data: { check: string; status: string; detail: string }[] }).data;
  const { status, detail } = rows.find(({ check }) => check === 'name server') as (typeof rows)[number];
  return { status, detail };
}

async function call<T>(method: string, target: string, body: object): Promise<T> {
  const { key, project_id } = first;
  const headers = { Authorization: `Bearer ${key}`, 'X-Svc-Project': project_id, 'Content-Type': 'application/json' };
  const answer = await fetch(`${address}${target}`, { method, headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${method} ${target}: ${answer.status} ${await answer.text()}`);
  return (await answer.json()) as T;
}

async function setAddress(value: string): Promise<void> {
  const records = `/v2/dns_zones/${zone.id}/records`;
  if (record) await call('PATCH', `${records}/${record.id}`, { value });
  else record = await call('POST', records, { type: 'A', name: 'www', value, ttl: 60 });
}

function question(name: string): Buffer {
  return packet.encode({ type: 'query', id: 7, flags: 0, questions: [{ type: 'A', name: `${name}.${ZONE}` }] });
}

/** null without an answer in time. */
async function addressOf(name: string): Promise<string | null> {
  const socket = dgram.createSocket('udp4');
  try {
    const answered = new Promise<string>((resolve) => socket.on('message', (bytes) => resolve(addressIn(bytes))));
    socket.send(question(name), port, '127.0.0.1');
    return await Promise.race([answered, sleep(ANSWER_WITHIN_MS, null, { ref: false })]);
  } finally {
    socket.close();
  }
}

/** The one that answers. */
function answerer(): ProcessRow | undefined {
  return processesWith('engines/dns/process/process').find(({ parent }) => parent === program.pid);
}

test('a port that is taken is tried again: freed, all zones are answered', async () => {
  const taken = expect.stringContaining(`127.0.0.1:${port}: the port is taken.`);
  expect(await doctor()).toEqual({ status: 'warning', detail: taken });
  expect(await metric()).toBe('0');
  expect(program.out()).toContain('the name server cannot listen');
  await releasePort();
  await waitFor('the record is answered', async () => (await addressOf('www')) === '192.0.2.1');
  await waitFor('the metric says so', async () => (await metric()) === '1');
  expect(await doctor()).toEqual({ status: 'ok', detail: `a running service answers at 127.0.0.1:${port}` });
});

async function killAnswerer(): Promise<void> {
  const before = answerer()?.pid as number;
  signalAll([before]);
  await waitFor('a successor runs', async () => (answerer()?.pid ?? before) !== before);
}

test('the process killed, its successor has everything and takes changes', async () => {
  await killAnswerer();
  await waitFor('it answers', async () => (await addressOf('www')) === '192.0.2.1', 15_000);
  await setAddress('192.0.2.6');
  await waitFor('a change is answered', async () => (await addressOf('www')) === '192.0.2.6', 15_000);
});

test('a zone whose copy on disk was deleted is served again', async () => {
  const copies = path.join(directory, 'dns');
  for (const name of readdirSync(copies)) rmSync(path.join(copies, name), { recursive: true });
  // Without the copy, the next process knows nothing of the zone, until its next check.
  await killAnswerer();
  await call('POST', `/v2/dns_zones/${zone.id}/verify`, {});
  await waitFor('it answers', async () => (await addressOf('www')) === '192.0.2.6');
  expect(readdirSync(copies)).toContain(`${zone.id}.json`);
});

const addressOver = async (socket: Socket): Promise<string> => addressIn(await queryOver(socket, question('www')));

describe('the database away for a minute', () => {
  let frozen: number[] = [];
  let since: number;

  beforeAll(() => {
    frozen = processesWith(directory)
      .filter(({ args }) => args.includes('postgres'))
      .map(({ pid }) => pid);
    expect(frozen.length).toBeGreaterThan(0);
    signalAll(frozen, 'SIGSTOP');
    since = Date.now();
  });
  afterAll(() => signalAll(frozen, 'SIGCONT'));

  test('10,000 connections are answered, and a newcomer beside them, over TCP and UDP', async () => {
    const open: Socket[] = [];
    try {
      let answered = 0;
      // Within the 10 s that an idle connection is kept.
      for (let from = 0; from < CONNECTIONS; from += 500) {
        const batch = Array.from({ length: 500 }, (_, index) => {
          const localAddress = `127.0.${1 + (index % 4)}.1`;
          return connect({ port, host: '127.0.0.1', localAddress });
        });
        open.push(...batch);
        const found = await Promise.all(batch.map(addressOver));
        answered += found.filter((address) => address === '192.0.2.6').length;
      }
      expect(answered).toBe(CONNECTIONS);
      const newcomer = connect({ port, host: '127.0.0.1' });
      open.push(newcomer);
      expect(await addressOver(newcomer)).toBe('192.0.2.6');
      expect(await addressOf('www')).toBe('192.0.2.6');
    } finally {
      for (const socket of open) socket.on('error', () => {}).destroy();
    }
  });

  test('clients that send byte by byte, or never read, are let go; others are answered meanwhile', async () => {
    const trickle = connect({ port, host: '127.0.0.1' });
    const deaf = connect({ port, host: '127.0.0.1' });
    deaf.pause();
    const bytes = question('www');
    const many = Buffer.concat(
      Array.from({ length: 2_000 }, () => Buffer.concat([Buffer.from([0, bytes.length]), bytes])),
    );
    const closed = [trickle, deaf].map(
      (socket) => new Promise((resolve) => socket.on('error', resolve).on('close', resolve)),
    );
    // A message that would end after minutes.
    const timer = setInterval(() => trickle.writable && trickle.write(Buffer.from([0])), 500);
    const flood = setInterval(() => deaf.writable && deaf.writableLength < 1 << 20 && deaf.write(many), 10);
    trickle.write(Buffer.from([16, 0]));
    try {
      const begin = Date.now();
      while (Date.now() - begin < 3_000) {
        expect(await addressOf('www')).toBe('192.0.2.6');
        await sleep(100);
      }
      await Promise.race([
        Promise.all(closed),
        sleep(40_000, null, { ref: false }).then(() => Promise.reject(new Error('still open'))),
      ]);
    } finally {
      clearInterval(timer);
      clearInterval(flood);
      for (const socket of [trickle, deaf]) socket.destroy();
    }
  });

  test('damaged messages over UDP and TCP end no process', async () => {
    const before = answerer();
    const socket = dgram.createSocket('udp4');
    for (let number = 0; number < DAMAGED; number += 1) {
      socket.send(damagedQuestion(question('www'), number), port, '127.0.0.1');
      // As fast as the socket takes them, but with turns for answers.
      if (number % 100 === 0) await sleep(1);
    }
    socket.close();
    const connections = Array.from({ length: 200 }, (_, number) =>
      connect({ port, host: '127.0.0.1' }).end(damagedQuestion(question('www'), number)),
    );
    const ended = connections.map(
      (one) => new Promise((resolve) => one.on('error', resolve).on('close', resolve).resume()),
    );
    await Promise.all(ended);
    expect(await addressOf('www')).toBe('192.0.2.6');
    expect(answerer()).toEqual(before);
  });

  test('zones are answered on, and a process that is killed meanwhile is replaced with everything', async () => {
    await killAnswerer();
    await waitFor('it answers', async () => (await addressOf('www')) === '192.0.2.6');
    while (Date.now() - since < DATABASE_AWAY_MS) {
      expect(await addressOf('www')).toBe('192.0.2.6');
      await sleep(250);
    }
  });

  test('back again, changes are taken and answered', async () => {
    signalAll(frozen, 'SIGCONT');
    await waitFor('a change is taken', () =>
      setAddress('192.0.2.7').then(
        () => true,
        () => false,
      ),
    );
    await waitFor('and answered', async () => (await addressOf('www')) === '192.0.2.7');
  });
});
