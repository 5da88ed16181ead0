// The certificate that an operator brings along, and what leaves the driver of an authority that misbehaves.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { openCertificates } from '../../../drivers/certificates/open';
import { operatorCertificate, type OperatorCertificate } from '../../../drivers/certificates/operator';
import { newPrivateKey } from '../../../drivers/certificates/private_key';
import { toRefusal } from '../../../drivers/certificates/acme_problem';
import { AuthorityBusy } from '../../../drivers/certificates/failures';
import { DriverError, driverContext } from '../../../core/driver';

const folder = mkdtempSync(path.join(tmpdir(), 'platform-api-certificates-'));
const file = (name: string): string => path.join(folder, name);
let opened: OperatorCertificate | null = null;

afterEach(() => {
  opened?.close();
  opened = null;
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const hasOpenssl = spawnSync('openssl', ['version']).status === 0;
const withOpenssl = hasOpenssl || process.env.CI ? describe : describe.skip;

function make(name: string, host: string): { ingressCertFile: string; ingressKeyFile: string } {
  const [ingressCertFile, ingressKeyFile] = [file(`${name}.cert`), file(`${name}.key`)];
  execFileSync(
    'openssl',
    [
      'req',
      '-x509',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:P-256',
      '-nodes',
      '-days',
      '1',
      '-subj',
      '/CN=test',
      '-addext',
      `subjectAltName=DNS:${host}`,
      '-keyout',
      ingressKeyFile,
      '-out',
      ingressCertFile,
    ],
    { stdio: 'ignore' },
  );
  return { ingressCertFile, ingressKeyFile };
}

withOpenssl('the certificate of the operator (needs openssl)', () => {
  const none = { ingressCertFile: null, ingressKeyFile: null };
  const nothing = (): void => {};

  test('is served for the names that it is made for', () => {
    opened = operatorCertificate(make('apps', '*.apps.example.net'), nothing);
    expect(opened?.of('shop-a1b2.apps.example.net')?.chain).toContain('BEGIN CERTIFICATE');
    expect(['apps.example.net', 'a.b.apps.example.net', 'www.example.com'].map((name) => opened?.of(name))).toEqual([
      null,
      null,
      null,
    ]);
  });

  test('is none without files', () => {
    expect(operatorCertificate(none, nothing)).toBeNull();
  });

  test('stops a start that can not serve it, naming the setting', () => {
    const [one, two] = [make('one', 'one.example.net'), make('two', 'two.example.net')];
    writeFileSync(file('garbage'), 'garbage');
    const start = (files: object) => () => operatorCertificate({ ...one, ...files }, nothing);
    expect(start({ ingressKeyFile: null })).toThrow('set both INGRESS_CERT_FILE and INGRESS_KEY_FILE, or neither');
    expect(start({ ingressCertFile: file('absent') })).toThrow('INGRESS_CERT_FILE cannot be read: ENOENT');
    expect(start({ ingressKeyFile: file('garbage') })).toThrow('INGRESS_KEY_FILE is malformed');
    expect(start({ ingressKeyFile: two.ingressKeyFile })).toThrow('is not that of the first certificate');
  });

  test('is read again when it was renewed, once both files fit', async () => {
    const files = make('renewed', '*.apps.example.net');
    let changes = 0;
    opened = operatorCertificate(files, () => (changes += 1), 50);
    const first = opened?.of('a.apps.example.net')?.chain;
    const fresh = make('fresh', '*.apps.example.net');
    const copy = (from: string, to: string): void => {
      execFileSync('cp', [from, to]);
      utimesSync(to, new Date(), new Date(Date.now() + 5_000));
    };
    copy(fresh.ingressCertFile, files.ingressCertFile);
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect([changes, opened?.of('a.apps.example.net')?.chain === first]).toEqual([0, true]);
    copy(fresh.ingressKeyFile, files.ingressKeyFile);
    for (let turn = 0; turn < 50 && changes === 0; turn += 1) await new Promise((resolve) => setTimeout(resolve, 50));
    expect([changes, opened?.of('a.apps.example.net')?.chain === first]).toEqual([1, false]);
  });
});

type Answering = (...parts: Parameters<RequestListener>) => unknown;

describe('an authority that misbehaves', () => {
  async function ask(answer: Answering): Promise<DriverError> {
    const server = createServer((request, response) => void answer(request, response));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const directory = `http://127.0.0.1:${(server.address() as AddressInfo).port}/dir`;
    try {
      const driver = openCertificates({ directory, email: null, caFile: null });
      return await driver
        .issue(
          { hostname: 'www.example.com', accountKey: await newPrivateKey(), replaces: null, unfinished: null },
          { http: async () => {}, dns: async () => {}, order: async () => {} },
          driverContext(10_000),
        )
        .then(
          () => Promise.reject(new Error('it issued')),
          (error: DriverError) => error,
        );
    } finally {
      server.closeAllConnections();
      server.close();
    }
  }

  test.each<[string, RequestListener, RegExp]>([
    [
      'an error of its own',
      (_, response) => response.writeHead(503, { 'Retry-After': '90' }).end('sorry'),
      /is not available \(status 503\)/,
    ],
    [
      'a page instead of a problem',
      (_, response) => response.writeHead(404, { 'Content-Type': 'text/html' }).end('<h1>no</h1>'),
      /\(status 404\)/,
    ],
    ['another address', (_, response) => response.writeHead(302, { Location: '/elsewhere' }).end(), /\(status 302\)/],
    ['a broken connection', (request) => request.socket.destroy(), /\(ECONNRESET\)/],
    [
      'an endless answer',
      (_, response) => void response.writeHead(200).end(Buffer.alloc(3 << 20, 'a')),
      /\(too long\)/,
    ],
    ['no directory', (_, response) => response.writeHead(200).end('{}'), /internal error/],
  ])('%s is a transient failure', async (_, answer, message) => {
    const error = await ask(answer);
    expect(error).toBeInstanceOf(DriverError);
    expect([error.reason, error.message]).toEqual(['transient', expect.stringMatching(message)]);
  });

  test('its pause is handed on, up to a day', async () => {
    expect((await ask((_, response) => response.writeHead(503, { 'Retry-After': '90' }).end())).retryAfterMs).toBe(
      90_000,
    );
    const later = new Date(Date.now() + 600_000).toUTCString();
    expect(
      (await ask((_, response) => response.writeHead(503, { 'Retry-After': later }).end())).retryAfterMs,
    ).toBeGreaterThan(590_000);
    expect(
      (await ask((_, response) => response.writeHead(503, { 'Retry-After': '9999999999' }).end())).retryAfterMs,
    ).toBe(86_400_000);
    expect(
      (await ask((_, response) => response.writeHead(503, { 'Retry-After': 'soon' }).end())).retryAfterMs,
    ).toBeUndefined();
  });

  test('a clock that differs by hours is told in the same breath', async () => {
    const error = await ask((request, response) => {
      const at = `http://${request.headers.host}/x`;
      if (request.url === '/dir') return response.end(JSON.stringify({ newNonce: at, newAccount: at }));
      const headers = { Date: new Date(Date.now() + 10_800_000).toUTCString(), 'Retry-After': '90' };
      return response.writeHead(503, headers).end();
    });
    expect([error instanceof AuthorityBusy, error.retryAfterMs]).toEqual([true, 90_000]);
    expect(error.message).toMatch(
      /\(status 503\).* The clock of this machine is 180 min behind that of the certificate/,
    );
  });

  test.each([
    ['connection', '192.0.2.1: Fetching http://a.example.com/: Connection refused', /Let port 80 through/],
    ['connection', '2001:db8::7: Fetching http://a.example.com/: Timeout', /It came by IPv6: remove the AAAA record/],
    ['unauthorized', '[2001:db8::7]: Invalid response from http://a.example.com/: 404', /remove the AAAA record/],
    ['unauthorized', '192.0.2.1: Invalid response: "12:30 <html>"', /lead to the platform alone\.$/],
    ['dns', 'DNS problem: NXDOMAIN looking up A for a.example.com', /Create A or AAAA records/],
    ['caa', 'CAA record for a.example.com prevents issuance', /add one that allows the authority\.$/],
    ['userActionRequired', 'Terms of service have changed', /operator has to accept new terms/],
  ])('%s: %s', (kind, detail, advice) => {
    expect(toRefusal({ type: `urn:ietf:params:acme:error:${kind}`, detail }, null).message).toMatch(advice);
  });

  test('an account that it wants beforehand is no outage', async () => {
    const problem = JSON.stringify({ type: 'urn:ietf:params:acme:error:externalAccountRequired', detail: 'bind it' });
    const error = await ask((_, response) => response.writeHead(403).end(problem));
    expect([error.reason, error.message]).toEqual([
      'invalid',
      'The certificate authority requires an external account binding, which the platform does not support: bind it.',
    ]);
  });

  const week = 'in the last 168h0m0s, retry after 2026-12-01 12:00:00 UTC: see https://example.com/limits/#busy';
  test.each([
    ['too many new orders (300) from this account in the last 3h0m0s', true],
    ['Service busy; retry later.', true],
    [`too many certificates (50) already issued for "busy.example" ${week}`, false],
    [`too many certificates already issued for: registrations.busy.example: ${week}`, false],
    [`too many certificates (5) already issued for this exact set of identifiers ${week}`, false],
  ])('%s: all orders wait: %p', (detail, isOfAll) => {
    const error = toRefusal({ type: 'urn:ietf:params:acme:error:rateLimited', detail }, 86_400_000);
    expect(error instanceof AuthorityBusy).toBe(isOfAll);
  });

  test('its words are cut and cleaned', () => {
    const { message } = toRefusal(
      { type: 'urn:ietf:params:acme:error:caa', detail: `a\0b\u001b[31m${'c'.repeat(2_000)}` },
      null,
    );
    expect(message).toMatch(
      /^A CAA record in the DNS forbids this certificate authority to issue for the host name: a b \[31mc+\. Change /,
    );
    expect(message.length).toBeLessThan(700);
  });

  test('an unknown kind of refusal, and one without words, are sentences too', () => {
    expect(toRefusal({ type: 'urn:ietf:params:acme:error:malformed' }, null).message).toBe(
      'The certificate authority refused.',
    );
    expect(
      toRefusal(
        { type: 'urn:ietf:params:acme:error:compound', detail: 'several', subproblems: [{ detail: 'no A record' }] },
        null,
      ).message,
    ).toBe('The certificate authority refused: no A record.');
  });
});
