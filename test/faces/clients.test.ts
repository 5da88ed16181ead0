// Clients as they come: old, slow, huge, odd, or gone in the middle.
import { readFileSync } from 'node:fs';
import http from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../../core/limits';
import { withLimits } from '../support/contract/limits';
import { rawRequest, type RawAnswer } from '../support/ingress/raw_http';
import { endPrograms, startProgram } from '../support/processes/program';
import { createTestDatabase, type TestDatabase } from '../support/databases/database';
import { startService, type TestService } from '../support/service';

// Short, so that the test needs not wait as long as a slow client may.
withLimits({ headersTimeoutMs: 400, requestTimeoutMs: 800 });

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(async () => {
  await service.close();
  await endPrograms();
});

const auth = (): string => `Authorization: Bearer ${service.key}\r\nX-Svc-Project: ${service.project}\r\n`;
const send = (bytes: string): Promise<RawAnswer> => rawRequest(service.url, '', { bytes });
const volume = (name: string): string => JSON.stringify({ name, size_gb: 1 });

function expectProblem(answer: RawAnswer, status: number, code: string): void {
  expect([answer.status, answer.json?.code, answer.headers['content-type']]).toEqual([
    status,
    code,
    'application/problem+json',
  ]);
  expect(answer.headers['x-request-id']).toMatch(/^req_/);
  expect(answer.json?.request_id).toBe(answer.headers['x-request-id']);
}

/** Opens a connection and writes; everything that comes back. */
function dial(text: string): { socket: Socket; answer: Promise<string> } {
  const socket = connect(Number(new URL(service.url).port), '127.0.0.1', () => socket.write(text));
  let said = '';
  socket.on('data', (chunk: Buffer) => (said += chunk.toString()));
  const answer = new Promise<string>((resolve) => socket.once('close', () => resolve(said)).on('error', () => {}));
  return { socket, answer };
}

describe('forms of a request', () => {
  it('takes HTTP/1.0, without Host', async () => {
    const answer = await send(`GET /v2/volumes HTTP/1.0\r\n${auth()}\r\n`);
    expect([answer.status, answer.json?.data]).toEqual([200, []]);
    expectProblem(
      await send(`GET /v2/volumes HTTP/1.1\r\n${auth()}Connection: close\r\n\r\n`),
      400,
      'malformed_request',
    );
  });

  it('takes whole addresses', async () => {
    const host = 'Host: api.example.com\r\nConnection: close\r\n';
    expect((await send(`GET http://api.example.com/v2/volumes?limit=1 HTTP/1.1\r\n${host}${auth()}\r\n`)).status).toBe(
      200,
    );
    expect((await send(`GET http://api.example.com/healthz HTTP/1.1\r\n${host}\r\n`)).status).toBe(200);
    const asked = await send(`GET http://api.example.com?x=1 HTTP/1.1\r\n${host}\r\n`);
    expect([asked.status, asked.headers.location]).toEqual([302, '/v2/docs']);
    expect((await send(`OPTIONS * HTTP/1.1\r\n${host}\r\n`)).status).toBe(204);
  });

  it('takes bodies in chunks', async () => {
    const [one, two] = ['{"name": "chun', 'ked", "size_gb": 1}'];
    const chunks = [one, two].map((part) => `${part.length.toString(16)}\r\n${part}\r\n`).join('');
    const answer = await send(
      `POST /v2/volumes HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${auth()}Content-Type: application/json\r\n` +
        `Transfer-Encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`,
    );
    expect([answer.status, answer.json?.name]).toEqual([201, 'chunked']);
    const broken = await send(
      `POST /v2/volumes HTTP/1.1\r\nHost: x\r\n${auth()}Content-Type: application/json\r\n` +
        'Transfer-Encoding: chunked\r\n\r\nnothex\r\n',
    );
    expectProblem(broken, 400, 'malformed_request');
  });

  it('tells a client that asks first whether to send its body', async () => {
    const ask = (length: number): string =>
      `POST /v2/volumes HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${auth()}Content-Type: application/json\r\n` +
      `Expect: 100-continue\r\nContent-Length: ${length}\r\n\r\n`;
    const body = volume('continued');
    const { socket, answer } = dial(ask(body.length));
    socket.once('data', () => socket.write(body));
    expect(await answer).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 201 Created/);
    const tooLarge = await dial(ask(limits.bodyBytesMax + 1)).answer;
    expect(tooLarge).toMatch(/^HTTP\/1\.1 413 /);
    expect(
      (await send(`GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: wonders\r\n\r\n`)).status,
    ).toBe(200);
  });

  it('answers HEAD like GET, without a body', async () => {
    for (const place of [
      '/v2/volumes',
      '/v2/me',
      '/v2/openapi.json',
      '/v2/docs',
      '/v2/errors/not_found',
      '/v2/volumes/nobody',
      '/v2/nowhere',
      '/nowhere',
      '/healthz',
      '/readyz',
      '/',
      '/graphql',
    ]) {
      const [head, get] = await Promise.all(
        ['HEAD', 'GET'].map((method) =>
          send(`${method} ${place} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${auth()}\r\n`),
        ),
      );
      expect([place, head?.status, head?.body, head?.headers['content-type']]).toEqual([
        place,
        get?.status,
        '',
        get?.headers['content-type'],
      ]);
      expect([place, head?.headers['content-length']]).toEqual([place, get?.headers['content-length']]);
      expect(head?.headers['x-request-id']).toMatch(/^req_/);
    }
  });

  it('refuses what is no HTTP, and headers that are too large', async () => {
    expectProblem(await send('HELO there\r\n\r\n'), 400, 'malformed_request');
    expectProblem(
      await send(`GET /v2/me HTTP/1.1\r\nHost: x\r\nX-Long: ${'a'.repeat(limits.headerBytesMax)}\r\n\r\n`),
      431,
      'headers_too_large',
    );
  });

  it('does not mix up the answers of one connection when a later request is broken', async () => {
    const { answer } = dial(`GET /v2/me HTTP/1.1\r\nHost: x\r\n${auth()}\r\nrubbish\r\n\r\n`);
    const [first = ''] = (await answer).split('\r\n');
    expect(first).toBe('HTTP/1.1 200 OK');
  });
});

describe('bodies without end', () => {
  /** Sends until it is told to stop, or 64 MiB are on their way. */
  function flood(place: string, length: Record<string, string>): Promise<{ status: number | undefined; sent: number }> {
    return new Promise((resolve) => {
      const headers = {
        Authorization: `Bearer ${service.key}`,
        'X-Svc-Project': service.project,
        'Content-Type': 'application/json',
        ...length,
      };
      let sent = 0;
      let status: number | undefined;
      const request = http.request(service.url + place, { method: 'POST', headers, agent: false }, (response) => {
        status = response.statusCode;
        response.resume();
      });
      const more = (): void => {
        while (!request.destroyed && status === undefined && sent < 64 << 20) {
          sent += 1 << 16;
          if (!request.write(Buffer.alloc(1 << 16, 0x20))) return void request.once('drain', more);
        }
      };
      request.on('error', () => {}).on('close', () => resolve({ status, sent }));
      more();
    });
  }

  it.each(['/v2/volumes', '/graphql'])('%s', async (place) => {
    for (const length of [{ 'Content-Length': String(1 << 30) }, { 'Transfer-Encoding': 'chunked' }] as Record<
      string,
      string
    >[]) {
      const { status, sent } = await flood(place, length);
      expect([place, length, status]).toEqual([place, length, 413]);
      // What the kernels of both ends hold is beyond the server.
      expect(sent).toBeLessThan(32 << 20);
    }
  });
});

describe('slow clients', () => {
  const took = async (text: string, drip = ''): Promise<{ answer: string; ms: number }> => {
    const begun = performance.now();
    const { socket, answer } = dial(text);
    const timer = drip ? setInterval(() => socket.writable && socket.write(drip), 100) : undefined;
    const said = await answer;
    clearInterval(timer);
    return { answer: said, ms: performance.now() - begun };
  };

  it.each([
    ['headers that stop', `GET /v2/me HTTP/1.1\r\nHost: x\r\n`, ''],
    ['headers that drip', `GET /v2/me HTTP/1.1\r\nHost: x\r\nX-Slow: `, 'a'],
    [
      'a body that stops',
      `POST /v2/volumes HTTP/1.1\r\nHost: x\r\nAUTH\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{`,
      '',
    ],
    [
      'a body that drips',
      'POST /v2/volumes HTTP/1.1\r\nHost: x\r\nAUTH\r\nContent-Type: application/json\r\n' +
        'Content-Length: 100000\r\n\r\n{',
      ' ',
    ],
    [
      'a GraphQL body that stops',
      `POST /graphql HTTP/1.1\r\nHost: x\r\nAUTH\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{`,
      '',
    ],
  ])('%s', async (...[, text, drip]) => {
    const { answer, ms } = await took(text.replace('AUTH\r\n', auth()), drip);
    expect(answer).toMatch(/^HTTP\/1\.1 408 Request Timeout\r\n/);
    expect(answer).toContain('"code":"request_timeout"');
    expect(answer.match(/HTTP\/1\.1 /g)).toHaveLength(1);
    expect(answer).toMatch(/X-Request-Id: req_/i);
    expect(ms).toBeLessThan(8_000);
  });
});

describe('clients that leave in the middle', () => {
  let database: TestDatabase;
  beforeAll(async () => (database = await createTestDatabase()));
  afterAll(async () => {
    await endPrograms();
    await database.drop();
  });

  it('cost no error in the log, no connection and no memory', async () => {
    const dataDir = `${service.dataDir}/leavers`;
    const program = startProgram({
      DATABASE_URL: database.url,
      PLATFORM_DATA_DIR: dataDir,
      WORKER: 'separate',
      LOG_LEVEL: 'debug',
    });
    const base = await program.ready();
    // The welcome follows the last line of the start.
    for (let turn = 0; turn < 100 && !program.out().includes('Console: '); turn += 1) await sleep(50);
    const { key } = JSON.parse(readFileSync(`${dataDir}/first-key.json`, 'utf8')) as { key: string };
    const started = program.out().length;
    const starts = [
      `GET /v2/volumes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`,
      `POST /v2/volumes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\n` +
        'Content-Length: 50\r\n\r\n{"na',
      `POST /graphql HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\n` +
        'Content-Length: 50\r\n\r\n{"qu',
      `POST /graphql HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\n` +
        'Content-Length: 32\r\n\r\n{"query": "{ getMe { user } }" }',
      'GET /v2/me HT',
    ];
    for (let turn = 0; turn < 20; turn += 1) {
      await Promise.all(
        starts.map(
          (text) =>
            new Promise<void>((resolve) => {
              const socket = connect(Number(new URL(base).port), '127.0.0.1', () =>
                socket.write(text, () => setTimeout(() => socket.resetAndDestroy(), turn % 3)),
              );
              socket.on('close', () => resolve()).on('error', () => {});
            }),
        ),
      );
    }
    await sleep(300);
    const requests = (): number => program.out().split('"msg":"request"').length - 1;
    for (let turn = 0; turn < 100 && requests() <= 40; turn += 1) await sleep(100);
    const lines = program
      .out()
      .slice(started)
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as { level: string; msg: string });
    expect(lines.filter(({ level }) => level === 'error' || level === 'warn' || level === 'fatal')).toEqual([]);
    expect(lines.filter(({ msg }) => msg === 'request').length).toBeGreaterThan(40);
    expect(
      (await fetch(`${base}/v2/me`, { headers: { Authorization: `Bearer ${key}`, Connection: 'close' } })).status,
    ).toBe(200);
    program.signal('SIGTERM');
    const stopped = performance.now();
    expect([await program.ended, program.err()]).toEqual([0, '']);
    expect(performance.now() - stopped).toBeLessThan(15_000);
  });
});
