// Servers of others that refuse, stall, or break off: what an attempt learns from them.
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { openDestinations } from '../../../jobs/email/mail/destinations';
import { openTransport, type Hop, type HopResult, type Transport } from '../../../engines/mail/transport';

type Phase = 'greeting' | 'EHLO' | 'MAIL' | 'RCPT' | 'DATA' | 'message';

/** What the server does in a phase: a reply, the end of the connection, or nothing at all. */
type Act = string | 'drop' | 'stall';

const TIMES = { connectMs: 700, silenceMs: 700, attemptMs: 1_000 };
/** For what has to succeed, on a busy machine too. `connectMs` bounds the beginning of TLS as well. */
const PATIENT_TIMES = { connectMs: 4_000, silenceMs: 15_000, attemptMs: 30_000 };
/** Type of the record that begins TLS (RFC 8446 §5.1). */
const TLS_HANDSHAKE = 22;
const REPLIES: Record<Phase, string> = {
  greeting: '220 mx.example',
  EHLO: '250 mx.example',
  MAIL: '250 2.1.0 Ok',
  RCPT: '250 2.1.5 Ok',
  DATA: '354 Go on',
  message: '250 2.0.0 Ok: queued as 4ABC',
};

let transport: Transport;
const closers: (() => void)[] = [];
beforeAll(() => (transport = openTransport('client.example', TIMES)));
afterAll(() => {
  transport.close();
  closers.forEach((close) => close());
});

/** A server that does `act` in the phase, and what is usual in the others. */
async function server(
  phase: Phase | null,
  act: Act = '',
  ehlo = REPLIES.EHLO,
  tls: 'plain text' | 'silence' = 'silence',
): Promise<Hop & { connections(): number; lines: string[] }> {
  let connections = 0;
  const lines: string[] = [];
  const sockets = new Set<Socket>();
  const listener = createServer((socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on('error', () => {});
    const answer = (of: Phase): void => {
      if (of !== phase) return void socket.write(`${of === 'EHLO' ? ehlo : REPLIES[of]}\r\n`);
      if (act === 'drop') return void socket.destroy();
      if (act !== 'stall') socket.write(`${act}\r\n`);
    };
    let isMessage = false;
    let text = '';
    socket.on('data', (chunk) => {
      if (chunk[0] === TLS_HANDSHAKE) return void (tls === 'plain text' && socket.write('250 Ok\r\n'));
      text += chunk.toString('latin1');
      for (let end = text.indexOf('\r\n'); end !== -1; end = text.indexOf('\r\n')) {
        const line = text.slice(0, end);
        lines.push(line);
        text = text.slice(end + 2);
        if (isMessage && line !== '.') continue;
        if (isMessage) {
          isMessage = false;
          answer('message');
          continue;
        }
        const verb = line.slice(0, 4).toUpperCase();
        if (verb === 'STAR') socket.write('220 Go on\r\n');
        else if (verb === 'RSET' || verb === 'QUIT') socket.write('250 Ok\r\n');
        else answer(verb as Phase);
        isMessage = verb === 'DATA' && phase !== 'DATA';
      }
    });
    answer('greeting');
  });
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  closers.push(() => {
    sockets.forEach((socket) => socket.destroy());
    listener.close();
  });
  return {
    ...{ host: '127.0.0.1', port: (listener.address() as AddressInfo).port, secure: false, servername: 'mx.example' },
    ...{ tls: 'opportunistic', auth: null, ca: null },
    connections: () => connections,
    lines,
  };
}

const message = (lines = 3) => ({
  ...{ from: 'a@client.example', to: 'b@mx.example', size: lines * 20, needsUtf8: false },
  isEightBit: () => Promise.resolve(false),
  content: () => Readable.from([Buffer.from(`Subject: x\r\n\r\n${'.a line of text\r\n'.repeat(lines)}`)]),
});

const PHASES: Phase[] = ['greeting', 'EHLO', 'MAIL', 'RCPT', 'DATA', 'message'];

test('a server that takes the message is asked once, and its queue id is kept', async () => {
  const result = await transport.send(await server(null), message());
  expect(result).toMatchObject({ kind: 'delivered', response: expect.stringContaining('queued as 4ABC') });
});

test.each(PHASES)('a connection that breaks off at %s means later, and another server', async (phase) => {
  const result = await transport.send(await server(phase, 'drop'), message());
  expect(result).toMatchObject({ kind: 'later', isUnreachable: true });
});

test.each(PHASES)('a server that says nothing at %s is left after a time', async (phase) => {
  const result = await transport.send(await server(phase, 'stall'), message());
  expect(result).toMatchObject({ kind: 'later', isUnreachable: true });
});

test.each(['MAIL', 'RCPT', 'DATA', 'message'] as const)('4xx at %s means later, 5xx never', async (phase) => {
  const later = await transport.send(await server(phase, '451 4.7.1 Greylisted'), message());
  expect(later).toMatchObject({ kind: 'later', code: 451, isUnreachable: false });
  const never = await transport.send(await server(phase, '554 5.7.1 Not wanted'), message());
  expect(never).toMatchObject({ kind: 'never', code: 554, isUnreachable: false });
});

test('a server that takes nobody today (421, 554 at its greeting) is not the recipient’s refusal', async () => {
  for (const greeting of ['421 Busy', '554 No mail here'])
    expect(await transport.send(await server('greeting', greeting), message())).toMatchObject({
      ...{ kind: 'later', isUnreachable: true },
    });
  expect(await transport.send(await server('RCPT', '421 4.3.2 Closing'), message())).toMatchObject({
    ...{ kind: 'later', isUnreachable: true },
  });
});

test('replies that are no SMTP, or without an end, harm nobody', async () => {
  const junk = await transport.send(await server('EHLO', '\x00\xff\xfe junk'), message());
  expect(junk.kind).toBe('later');
  const long = await transport.send(await server('RCPT', `550 5.1.1 ${'x'.repeat(100_000)}`), message());
  expect([long.kind, long.response.length <= 500]).toEqual(['never', true]);
  const lines = await transport.send(await server('RCPT', '550-5.1.1 a\r\n550 5.1.1 b\u001b[31m'), message());
  expect(lines.response).not.toMatch(/\p{Cc}/u);
});

test.each(['plain text', 'silence'] as const)(
  '%s for TLS: without where it is only offered, not at all where it is demanded',
  async (tls) => {
    const offering = '250-mx.example\r\n250 STARTTLS';
    const hop = await server(null, '', offering, tls);
    const patient = openTransport('client.example', PATIENT_TIMES);
    closers.push(() => patient.close());
    expect(await patient.send(hop, message())).toMatchObject({ kind: 'delivered' });
    expect(hop.connections()).toBe(2);
    const demanded = await patient.send({ ...(await server(null, '', offering, tls)), tls: 'required' }, message());
    expect(demanded).toMatchObject({ kind: 'later', isUnreachable: true });
    const absent = await transport.send({ ...(await server(null)), tls: 'required' }, message());
    expect(absent.kind).toBe('later');
  },
);

describe('destinations', () => {
  const later = { kind: 'later', isUnreachable: false } as const;
  const away = { kind: 'later', isUnreachable: true } as const;
  const taken: Pick<HopResult, 'kind' | 'isUnreachable'> = { kind: 'delivered', isUnreachable: false };

  test('get ten connections each, and those that are full are left out of the next claim', async () => {
    const destinations = openDestinations();
    const releases = await Promise.all(Array.from({ length: 10 }, () => destinations.enter('busy.example')));
    await destinations.enter('other.example');
    expect(destinations.room()).toEqual({ blocked: ['busy.example'], free: { 'other.example': 9 }, each: 10 });
    let entered = false;
    const eleventh = destinations.enter('busy.example').then(() => (entered = true));
    await Promise.resolve();
    expect(entered).toBe(false);
    releases[0]?.();
    await eleventh;
    expect(entered).toBe(true);
  });

  test('that are away get nothing for a while, longer each time, until one message is taken', () => {
    let now = 0;
    const destinations = openDestinations(() => now);
    const waits: number[] = [];
    for (let count = 0; count < 9; count += 1) {
      destinations.note('away.example', away);
      const began = now;
      while (destinations.room().blocked.length) now += 1_000;
      waits.push((now - began) / 1_000);
    }
    expect(waits).toEqual([30, 60, 120, 240, 480, 960, 1800, 1800, 1800]);
    destinations.note('away.example', taken);
    destinations.note('away.example', away);
    expect(destinations.room().blocked).toEqual(['away.example']);
    now += 30_000;
    expect(destinations.room().blocked).toEqual([]);
  });

  test('that refuse twenty messages for now, one after the other, get nothing for a while', () => {
    const destinations = openDestinations(() => 0);
    for (let count = 0; count < 19; count += 1) destinations.note('slow.example', later);
    expect(destinations.room().blocked).toEqual([]);
    destinations.note('slow.example', taken);
    for (let count = 0; count < 20; count += 1) destinations.note('slow.example', later);
    expect(destinations.room().blocked).toEqual(['slow.example']);
  });
});

test('what a message needs is announced, and a quoted local part goes out as it is', async () => {
  const able = await server(null, '', '250-mx.example\r\n250-8BITMIME\r\n250 SMTPUTF8');
  const to = '"john \\"x\\" doe"@mx.example';
  await transport.send(able, { ...message(), to });
  await transport.send(able, { ...message(), isEightBit: () => Promise.resolve(true) });
  await transport.send(able, { ...message(), needsUtf8: true });
  await transport.send(able, message());
  expect(able.lines.filter((line) => /^(MAIL|RCPT) /.test(line))).toEqual([
    ...['MAIL FROM:<a@client.example>', `RCPT TO:<${to}>`],
    ...['MAIL FROM:<a@client.example> BODY=8BITMIME', 'RCPT TO:<b@mx.example>'],
    ...['MAIL FROM:<a@client.example> BODY=8BITMIME SMTPUTF8', 'RCPT TO:<b@mx.example>'],
    ...['MAIL FROM:<a@client.example>', 'RCPT TO:<b@mx.example>'],
  ]);
  const unable = await server(null);
  const results = [
    await transport.send(unable, { ...message(), isEightBit: () => Promise.resolve(true) }),
    await transport.send(unable, { ...message(), needsUtf8: true }),
  ];
  expect(results).toMatchObject([
    { kind: 'never', response: expect.stringContaining('5.6.3') },
    { kind: 'never', response: expect.stringContaining('5.6.7') },
  ]);
  expect(unable.lines.filter((line) => line.startsWith('MAIL'))).toEqual([]);
});
