/** @covers drivers/certificates */
// Orders at a real authority: continued after a kill, announced renewals, accounts that it has closed.
import { createServer, type Server } from 'node:http';
import { X509Certificate } from 'node:crypto';
import { driverContext } from '../../../core/driver';
import type {
  CertificateDriver,
  CertificateRequest,
  IssuedCertificate,
  UnfinishedOrder,
} from '../../../drivers/certificates';
import { AccountClosed } from '../../../drivers/certificates/failures';
import { openCertificates } from '../../../drivers/certificates/open';
import { newPrivateKey } from '../../../drivers/certificates/private_key';
import { certificateIdOf } from '../../../drivers/certificates/renewal_info';
import { startDnsServer, type DnsServer } from '../../support/dns/dns_server';
import { openPebble, type Pebble } from '../../support/ingress/pebble';
import { freePort } from '../../support/processes/free_port';
import { needs } from '../../support/runner/programs';

jest.setTimeout(120_000);

const HOST = 'www.orders.example';
let dns: DnsServer;
let pebble: Pebble;
let answers: Server;
let driver: CertificateDriver;
let accountKey: string;
const texts = new Map<string, string>();

const { describe: described } = needs('pebble', 'openssl');

/** Stops the order where the callback throws, as a kill would. */
async function issue(
  more: Partial<CertificateRequest> = {},
  stopAt: 'order' | 'http' | null = null,
): Promise<{ made: IssuedCertificate | null; left: UnfinishedOrder | null; error: Error | null }> {
  let left: UnfinishedOrder | null = null;
  const request = { hostname: HOST, accountKey, replaces: null, unfinished: null, ...more };
  const stop = (at: string): void => {
    if (at === stopAt) throw new Error('killed');
  };
  const publish = {
    async http(token: string, text: string) {
      texts.set(token, text);
      stop('http');
    },
    dns: async () => {},
    async order(order: UnfinishedOrder) {
      left = order;
      stop('order');
    },
  };
  return driver.issue(request, publish, driverContext(60_000)).then(
    (made) => ({ made, left, error: null }),
    (error: Error) => ({ made: null, left, error }),
  );
}

described('at an authority', () => {
  beforeAll(async () => {
    const httpPort = await freePort();
    dns = await startDnsServer({
      [`${HOST} A`]: ['127.0.0.1'],
      'order.orders.example A': ['127.0.0.1'],
      'http.orders.example A': ['127.0.0.1'],
    });
    answers = createServer((request, response) =>
      response.end(texts.get(request.url?.split('/').at(-1) ?? '') ?? 'none'),
    );
    await new Promise<void>((resolve) => answers.listen(httpPort, '127.0.0.1', resolve));
    pebble = await openPebble({ httpPort, dns: dns.address, validSeconds: 90 * 86_400 });
    await pebble.start();
    driver = openCertificates({ directory: pebble.directory, email: null, caFile: pebble.caFile });
    accountKey = await newPrivateKey();
  });

  afterAll(async () => {
    answers?.close();
    await pebble?.close();
    await dns?.close();
  });

  test.each(['order', 'http'] as const)('an order that was killed at %s is continued, with its key', async (at) => {
    // A name of its own: the authority may reuse what it has checked.
    const hostname = `${at}.orders.example`;
    const { left, made } = await issue({ hostname }, at);
    expect(made).toBeNull();
    const again = await issue({ hostname, unfinished: left });
    expect(again.error).toBeNull();
    expect(again.left).toEqual(left);
    expect(again.made?.key).toBe(left?.key);
  });

  test('an order that was finished without us is fetched, and costs no second one', async () => {
    const first = await issue();
    const again = await issue({ unfinished: first.left });
    expect(again.made?.chain).toBe(first.made?.chain);
  });

  test('an order that the authority has forgotten is placed anew', async () => {
    const url = `${new URL(pebble.directory).origin}/my-order/none`;
    const { made, left } = await issue({ unfinished: { url, key: await newPrivateKey() } });
    expect(made).not.toBeNull();
    expect(left?.url).not.toBe(url);
  });

  test('the id of a certificate is that of RFC 9773', async () => {
    const { made } = await issue();
    const [issuer, serial] = ((await certificateIdOf(made?.chain ?? '')) as string).split('.');
    const { serialNumber } = new X509Certificate(made?.chain ?? '');
    expect(BigInt(`0x${Buffer.from(serial as string, 'base64url').toString('hex')}`)).toBe(BigInt(`0x${serialNumber}`));
    expect(Buffer.from(issuer as string, 'base64url').length).toBeGreaterThan(0);
  });

  test('a renewal is announced, and one that was announced before is placed all the same', async () => {
    const first = await issue();
    const window = await driver.renewalWindow(first.made?.chain ?? '', driverContext(10_000));
    // Older versions give no renewal information.
    if (window) {
      expect(window.start.getTime()).toBeGreaterThan(Date.now());
      expect(window.end.getTime()).toBeLessThan(first.made?.expiresAt.getTime() ?? 0);
      expect(window.retryAfterMs).toBeGreaterThanOrEqual(60_000);
    }
    for (let turn = 0; turn < 2; turn += 1) {
      const { made, error } = await issue({ replaces: first.made?.chain ?? '' });
      expect([error, made === null]).toEqual([null, false]);
    }
  });

  test('a certificate of another account is replaced without being announced', async () => {
    const first = await issue();
    const { made, error } = await issue({ replaces: first.made?.chain ?? '', accountKey: await newPrivateKey() });
    expect([error, made === null]).toEqual([null, false]);
  });

  test('an account that the authority has closed is told apart', async () => {
    const key = accountKey;
    await deactivate(key);
    const { error } = await issue();
    expect(error).toBeInstanceOf(AccountClosed);
    accountKey = await newPrivateKey();
  });

  test('the clock of the authority is ours here', () => {
    expect(driver.clockAdvice()).toBe('');
  });
});

async function deactivate(key: string): Promise<void> {
  const { Client } = await import('acme-client');
  const client = new Client({ directoryUrl: pebble.directory, accountKey: key });
  await client.createAccount({ termsOfServiceAgreed: true, contact: [] });
  await client.updateAccount({ status: 'deactivated' } as never);
}
