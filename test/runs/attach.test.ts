// Clients at runs: WebSockets that are really served, by a service that really runs.
import { createHash, randomBytes } from 'node:crypto';
import http from 'node:http';
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { startDeployService, type DeployService, type TestApplication } from '../support/deployments/deploy';
import { newBrowser } from '../support/identity/browser';
import { nodeApp } from '../support/git/repositories';
import { attach as attachTo, type AttachOptions, type RunClient } from '../support/runs/attach';
import { runEnded, runIs, runLog, startRun } from '../support/runs/runs';

let service: DeployService;
let application: TestApplication;

beforeAll(async () => {
  service = await startDeployService();
  application = await service.application(nodeApp('one'));
  expect((await application.deploy()).status).toBe('active');
}, 60_000);
afterAll(() => service?.close(), 60_000);

const attach = (id: string, options: AttachOptions = {}): Promise<RunClient> =>
  attachTo(service, application, id, options);
const start = async (command: string, more: object = {}): Promise<string> =>
  (await startRun(application, command, more)).id;
const INPUT = { detached: false };

describe('output', () => {
  test('comes on two channels, then the exit code, and the run says the same', async () => {
    const id = await start('echo out; echo err >&2; exit 4');
    const client = await attach(id);
    expect(await client.closed).toEqual({ code: 1000, reason: 'The run has ended.' });
    expect([client.stdout(), client.stderr()]).toEqual(['out\n', 'err\n']);
    expect(client.controls).toEqual([
      { type: 'ready', writer: false, tty: false },
      { type: 'exit', code: 4, signal: null },
    ]);
    expect(await runEnded(application, id)).toMatchObject({ exit_code: 4 });
  });

  test('is repeated for those who come late: the last 64 KiB, or as much as they ask for', async () => {
    const id = await start('seq 1 50000');
    await runEnded(application, id);
    const [late, whole] = [await attach(id), await attach(id, { query: '?replay_bytes=10000000' })];
    await Promise.all([late.closed, whole.closed]);
    expect(late.stdout()).toHaveLength(65_536);
    expect(late.stdout().endsWith('\n50000\n')).toBe(true);
    expect(whole.stdout()).toHaveLength(288_894);
    expect(whole.controls.at(-1)).toEqual({ type: 'exit', code: 0, signal: null });
  });

  test('waits for a slow reader, and holds nobody else up', async () => {
    const id = await start('seq -f %0100g 1 40000; echo end');
    const slow = await attach(id, { query: '?replay_bytes=100000000' });
    slow.ws.pause();
    const quick = await attach(id, { query: '?replay_bytes=100000000' });
    await quick.closed;
    expect(await runEnded(application, id)).toMatchObject({ status: 'succeeded' });
    const memory = process.memoryUsage().arrayBuffers;
    await sleep(1_000);
    expect(process.memoryUsage().arrayBuffers - memory).toBeLessThan(4e6);
    slow.ws.resume();
    await slow.closed;
    expect(slow.stdout()).toBe(quick.stdout());
    expect(slow.stdout()).toHaveLength(40_000 * 101 + 4);
  }, 60_000);

  test('of a signal has its name and the code of shells', async () => {
    const client = await attach(await start('kill -KILL $$'));
    await client.closed;
    expect(client.controls.at(-1)).toEqual({ type: 'exit', code: 137, signal: 'SIGKILL' });
  });
});

describe('input', () => {
  test('goes to the program, which reads its end when the client ends it', async () => {
    const id = await start('wc -l; echo counted', INPUT);
    const client = await attach(id);
    expect(await client.told('ready')).toEqual({ type: 'ready', writer: true, tty: false });
    client.type('one\ntwo\n');
    client.type('three\n');
    client.command({ type: 'close_stdin' });
    await client.closed;
    expect(client.stdout()).toBe('3\ncounted\n');
  });

  test('of 10 MB arrives whole, though the program reads slowly', async () => {
    const bytes = randomBytes(10_000_000);
    const id = await start('sleep 1; head -c 5000000 | sha256sum; sleep 1; sha256sum', INPUT);
    const client = await attach(id);
    await client.told('ready');
    for (let at = 0; at < bytes.length; at += 500_000) client.type(bytes.subarray(at, at + 500_000));
    client.command({ type: 'close_stdin' });
    await client.closed;
    const hash = (from: number, to: number): string =>
      `${createHash('sha256').update(bytes.subarray(from, to)).digest('hex')}  -\n`;
    expect(client.stdout()).toBe(hash(0, 5_000_000) + hash(5_000_000, 10_000_000));
  }, 30_000);

  test('has one writer at a time, and outlives it', async () => {
    const id = await start('while read -r line; do echo "got $line"; done; echo end', INPUT);
    const first = await attach(id);
    expect((await first.told('ready')).writer).toBe(true);
    const second = await attach(id);
    expect((await second.told('ready')).writer).toBe(false);
    const reader = await attach(id, { query: '?read_only=true' });
    second.type('refused\n');
    expect(await second.told('error')).toMatchObject({ message: expect.stringMatching(/only reads/) });
    first.type('one\n');
    for (const one of [first, second, reader]) await one.shows('got one');
    first.ws.terminate();
    second.ws.terminate();
    await sleep(500);
    const third = await attach(id);
    expect((await third.told('ready')).writer).toBe(true);
    third.type('two\n');
    await reader.shows('got two');
    third.command({ type: 'close_stdin' });
    await Promise.all([third.closed, reader.closed]);
    expect(reader.stdout()).toBe('got one\ngot two\nend\n');
    expect(reader.stdout()).not.toContain('refused');
  });

  test('that nobody reads any more is dropped', async () => {
    const id = await start('exec <&-; sleep 1; echo end', INPUT);
    const client = await attach(id);
    await client.told('ready');
    client.type('x'.repeat(900_000));
    client.type('x'.repeat(900_000));
    await client.closed;
    expect(client.stdout()).toBe('end\n');
  });

  test('a signal reaches the program', async () => {
    const script = `process.on("SIGUSR1", () => { console.log("usr1"); process.exit(6); });`;
    const id = await start(`node -e '${script} setInterval(() => {}, 1e3); console.log("ready")'`, INPUT);
    const client = await attach(id);
    await client.shows('ready');
    client.command({ type: 'signal', signal: 'SIGUSR1' });
    await client.closed;
    expect(client.stdout()).toBe('ready\nusr1\n');
    expect(client.controls.at(-1)).toMatchObject({ code: 6 });
  });
});

describe('a handshake', () => {
  let id: string;
  beforeAll(async () => void (id = await start('sleep 30')));
  afterAll(() => application.post(`/runs/${id}/cancel`));

  test('is refused as any other request is', async () => {
    const readOnly = await service.mintKey({ scopes: ['read', 'logs:read'] });
    const viewer = await service.mintKey({ role: 'viewer' });
    await expect(attach(id, { key: 'svc_live_wrong' })).rejects.toThrow(/^401 .*token_invalid/);
    await expect(attach(id, { key: readOnly })).rejects.toThrow(/^403 .*insufficient_scope/);
    await expect(attach(id, { key: viewer })).rejects.toThrow(/^403 .*role_not_permitted/);
    await expect(attach('run_01h455vb4pex5vsknk084sn02q')).rejects.toThrow(/^404 .*not_found/);
    await expect(attach(id, { query: '?read_only=perhaps' })).rejects.toThrow(/^400 .*invalid_query_parameter/);
    await expect(attach(id, { protocol: 'other.v1' })).rejects.toThrow(/^400 .*platform\.run\.v1/);
    const foreign = await service.newProject({ stranger: true });
    await expect(attach(id, { key: foreign.key, headers: { 'X-Svc-Project': foreign.id } })).rejects.toThrow(/^404 /);
  });

  test('of a page of another site with the cookie of a session is refused', async () => {
    const { url } = service;
    const status = await new Promise<number | undefined>((resolve, reject) => {
      http
        .get(`${url}/v2/applications/${application.id}/runs/${id}/attach`, {
          headers: {
            Cookie: `platform_session=${'a'.repeat(43)}`,
            Origin: 'https://evil.example',
            Connection: 'Upgrade',
            Upgrade: 'websocket',
            'Sec-WebSocket-Version': '13',
            'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
            'Sec-WebSocket-Protocol': 'platform.run.v1',
          },
        })
        .once('response', (response) => resolve(response.resume().statusCode))
        .once('upgrade', (response, socket) => (socket.destroy(), resolve(response.statusCode)))
        .once('error', reject);
    });
    expect(status).toBe(403);
  });

  test('without an upgrade says what can be attached to', async () => {
    const { status, body } = await service.call('GET', `/v2/applications/${application.id}/runs/${id}/attach`);
    expect(status).toBe(200);
    expect(body).toMatchObject({ run_id: id, protocol: 'platform.run.v1', tty: false, detached: true });
  });

  test('to something else is a request without it, with its body', async () => {
    const body = JSON.stringify({ command: 'true' });
    const { hostname, port } = new URL(service.url);
    const text = await new Promise<string>((resolve, reject) => {
      let all = '';
      const socket = net.connect(Number(port), hostname).on('error', reject);
      socket.on('data', (part) => {
        all += part.toString();
        if (all.includes('"command"')) resolve(all);
      });
      socket.on('close', () => resolve(all));
      socket.setTimeout(5_000, () => socket.destroy());
      socket.write(
        `POST /v2/applications/${application.id}/runs HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\n` +
          'Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\nContent-Type: application/json\r\n' +
          `Authorization: Bearer ${service.key}\r\nX-Svc-Project: ${service.project}\r\n` +
          `Content-Length: ${body.length}\r\n\r\n${body}`,
      );
    });
    expect(text).toMatch(/^HTTP\/1\.1 201 /);
    expect(text).toContain('"command":"true"');
  });

  test('a client that breaks the protocol is closed, and the run goes on', async () => {
    for (const message of [Buffer.of(9, 1), Buffer.of(3, 123), 'text', Buffer.alloc(0)]) {
      const client = await attach(id);
      await client.told('ready');
      client.ws.send(message);
      expect((await client.closed).code).toBe(1002);
    }
    expect((await runIs(application, id, 'running')).status).toBe('running');
  });

  test('what is typed after the key was revoked does not reach the program, and the connection ends', async () => {
    const shell = await start('while read -r line; do echo "got $line"; done; echo over', INPUT);
    const owner = await newBrowser(service, 'typist@example.com', 'developer');
    const { createPersonalKey: made } = await owner.data(
      `mutation { createPersonalKey(input: { name: "CI", scopes: ["read", "write", "deploy", "logs:read"] })
        { key { id } token } }`,
    );
    const client = await attach(shell, { key: made.token });
    await client.told('ready');
    client.type('before\n');
    await client.shows('got before');
    await owner.data('mutation ($id: ID!) { revokePersonalKey(id: $id) }', { id: made.key.id });
    const before = performance.now();
    client.type('after\n');
    expect(await client.closed).toMatchObject({ code: 1008, reason: 'token_invalid' });
    expect(performance.now() - before).toBeLessThan(5_000);
    const next = await attach(shell);
    await next.told('ready');
    next.type('of another\n');
    next.command({ type: 'close_stdin' });
    await next.closed;
    expect(next.stdout()).toBe('got before\ngot of another\nover\n');
  });

  test('input waits while the right cannot be looked at', async () => {
    const shell = await start('cat', INPUT);
    const key = await service.mintKey();
    const client = await attach(shell, { key });
    await client.told('ready');
    await service.sql('alter table api_keys rename to api_keys_away');
    try {
      await sleep(2_500);
      client.type('while it was away\n');
      await sleep(1_000);
      expect(client.stdout()).toBe('');
    } finally {
      await service.sql('alter table api_keys_away rename to api_keys');
    }
    await client.shows('while it was away');
    client.command({ type: 'close_stdin' });
    await client.closed;
  });

  test('a caller who loses the right is cut off', async () => {
    const key = await service.mintKey();
    const client = await attach(id, { key });
    await client.told('ready');
    await service.sql('delete from api_keys where prefix = $1', [key.slice(0, 12)]);
    expect((await client.closed).code).toBe(1008);
  }, 30_000);
});

test('the output of a run with a client is in its log too', async () => {
  const id = await start('cat', INPUT);
  const client = await attach(id);
  await client.told('ready');
  client.type('typed\n');
  await client.shows('typed');
  client.command({ type: 'close_stdin' });
  await client.closed;
  await runEnded(application, id);
  expect(await runLog(application, id)).toEqual(['typed']);
});
