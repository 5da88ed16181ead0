/** @tier heavy @quarter 1 @covers server/agents/mail/mail_certificate.ts drivers/certificates */
// The certificate of the mail server: ordered of pebble for SMTP_HOST, or files that an operator replaces.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { connect, type PeerCertificate } from 'node:tls';
import { issueServerCertificate, newAuthority, type KeyedCertificate } from '../../../drivers/certificates/authority';
import { startDnsServer, type DnsServer } from '../../support/dns/dns_server';
import { freePort } from '../../support/processes/free_port';
import { SMTP_HOST } from '../../support/email/mail';
import { openPebble, type Pebble } from '../../support/ingress/pebble';
import { needs } from '../../support/runner/programs';
import { startService, type TestService } from '../../support/service';
import { retryCheck } from '../../support/wait_for';

jest.setTimeout(120_000);

const { describe: described } = needs('pebble', 'openssl');

/** What a client sees that trusts this authority alone; null where it refuses the certificate. */
function handshake(port: number, ca: string): Promise<PeerCertificate | null> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', servername: SMTP_HOST, ca }, () => {
      resolve(socket.getPeerCertificate());
      socket.destroy();
    });
    socket.once('error', () => resolve(null));
  });
}

described('ordered by ACME', () => {
  let dns: DnsServer;
  let pebble: Pebble;
  let service: TestService;
  let port: number;

  beforeAll(async () => {
    const httpPort = await freePort();
    dns = await startDnsServer({ [`${SMTP_HOST} A`]: ['127.0.0.1'] });
    pebble = await openPebble({ httpPort, dns: dns.address, validSeconds: 604_800 });
    await pebble.start();
    port = await freePort();
    service = await startService({
      worker: true,
      settings: {
        ...{ SMTP_HOST, SMTP_PORTS: `${port}/tls`, INGRESS_PORT: String(httpPort), DNS_RESOLVERS: dns.address },
        ...{ ACME_DIRECTORY: pebble.directory, ACME_CA_FILE: pebble.caFile },
      },
    });
  });

  afterAll(async () => {
    await service?.close();
    await pebble?.close();
    await dns?.close();
  });

  const own = (): Promise<{ domain_id: string | null; issued: boolean }[]> =>
    service.sql(`select domain_id, chain is not null as issued from certificates where id = $1`, [SMTP_HOST]);

  test('SMTP_HOST gets a certificate without anybody asking, and clients see it', async () => {
    const root = await pebble.root();
    await retryCheck(async () => {
      expect((await handshake(port, root))?.subjectaltname).toBe(`DNS:${SMTP_HOST}`);
    }, 60_000);
    expect(await own()).toEqual([{ domain_id: null, issued: true }]);
    expect(await service.sql('select 1 from acme_challenges')).toEqual([]);
  });

  test('one that is about to end is renewed, and used from the next session on', async () => {
    const root = await pebble.root();
    const before = await handshake(port, root);
    await service.sql(
      `update certificates set issued_at = now() - interval '6 days', expires_at = now() + interval '1 day',
         next_at = now(), renewal = '{"ask_at": "2999-01-01T00:00:00Z"}' where id = $1`,
      [SMTP_HOST],
    );
    await service.sql(`select pg_notify('due', 'certificates')`);
    await retryCheck(async () => {
      const seen = await handshake(port, root);
      expect(seen?.subjectaltname).toBe(`DNS:${SMTP_HOST}`);
      expect(seen?.serialNumber).not.toBe(before?.serialNumber);
    }, 60_000);
  });

  test('one that went with a custom domain of the name is ordered anew', async () => {
    await service.sql('delete from certificates where id = $1', [SMTP_HOST]);
    await retryCheck(async () => expect(await own()).toEqual([{ domain_id: null, issued: true }]), 60_000);
  });
});

describe('files', () => {
  let service: TestService;
  let directory: string;
  let authority: KeyedCertificate;
  let port: number;
  const file = (name: string): string => path.join(directory, name);

  const write = async (names: readonly ('cert.pem' | 'key.pem')[]): Promise<() => void> => {
    const { certificate, key } = await issueServerCertificate(authority, [SMTP_HOST]);
    const rest = ['cert.pem', 'key.pem'].filter((name) => !names.includes(name as 'cert.pem'));
    const put = (name: string): void => writeFileSync(file(name), name === 'cert.pem' ? certificate : key);
    names.forEach(put);
    return () => rest.forEach(put);
  };
  const serial = async (): Promise<string | undefined> => (await handshake(port, authority.certificate))?.serialNumber;

  beforeAll(async () => {
    directory = mkdtempSync(path.join(tmpdir(), 'mail-certificate-'));
    authority = await newAuthority('Operator');
    await write(['cert.pem', 'key.pem']);
    port = await freePort();
    service = await startService({
      worker: true,
      settings: {
        ...{ SMTP_HOST, SMTP_PORTS: `${port}/tls`, SMTP_CERT_FILE: file('cert.pem'), SMTP_KEY_FILE: file('key.pem') },
        // Files go first: nothing is ordered for the name.
        ACME_DIRECTORY: 'http://127.0.0.1:1/dir',
      },
    });
  });

  afterAll(async () => {
    await service?.close();
    rmSync(directory, { recursive: true });
  });

  test('are used, and again when they change; a certificate without its key yet changes nothing', async () => {
    const first = await serial();
    expect(first).toBeDefined();
    expect(await service.sql('select 1 from certificates')).toEqual([]);
    const finish = await write(['cert.pem']);
    // Longer than it takes to see that a file has changed.
    for (const until = Date.now() + 6_000; Date.now() < until;) expect(await serial()).toBe(first);
    finish();
    await retryCheck(async () => {
      const seen = await serial();
      expect([seen === undefined, seen === first]).toEqual([false, false]);
    }, 30_000);
  });
});
