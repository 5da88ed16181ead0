/** @tier heavy @quarter 3 @covers engines/dns/nameserver core/protocols/dns models/dns/dns_zone */
// DNSViz looks at zones of the embedded name server: signed and not, names of every kind.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { startDnsParent, type DnsParent } from '../support/dns/dns_parent';
import { freePort } from '../support/processes/free_port';
import { fileNeeds } from '../support/runner/programs';
import { startService, type Answer, type TestService } from '../support/service';
import { describeSuite } from '../support/runner/suites';
import { withConfig } from '../support/config';

fileNeeds('named', 'dig');

const run = promisify(execFile);
const RUN_MS = 90_000;

describeSuite('dnsviz', ['venv/bin/dnsviz'], (place) => {
  const directory = mkdtempSync(path.join(tmpdir(), 'dnsviz-'));
  let service: TestService;
  let parent: DnsParent;
  let port: number;

  beforeAll(async () => {
    port = await freePort();
    parent = await startDnsParent('example.com', await freePort());
    const settings = { DNS_PORT: String(port), ...withConfig({ dnsRoots: [parent.address] }), DNS_IPS: '127.0.0.1' };
    service = await startService({ worker: true, settings });
  }, 60_000);
  afterAll(async () => {
    await service?.close();
    await parent?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  async function makeZone(name: string): Promise<Answer['body']> {
    const zone = (await service.call('POST', '/v2/dns_zones', { body: { name } })).body;
    const records = [
      { type: 'A', name: '@', value: '192.0.2.1' },
      { type: 'A', name: 'www', value: '192.0.2.1' },
      { type: 'AAAA', name: 'www', value: '2001:db8::1' },
      { type: 'CNAME', name: 'alias', value: `www.${name}` },
      { type: 'TXT', name: '@', value: 'v=spf1 -all' },
      { type: 'TXT', name: '*.wild', value: 'x'.repeat(600) },
      { type: 'A', name: 'a.empty', value: '192.0.2.2' },
    ];
    const put = await service.call('PUT', `/v2/dns_zones/${zone.id}/records`, { body: { records } });
    expect(put.status).toBe(200);
    await parent.delegate(zone.name, zone.name_servers);
    expect((await service.call('POST', `/v2/dns_zones/${zone.id}/verify`)).body.status).toBe('active');
    return zone;
  }

  const kinds = ['', 'www.', 'alias.', 'any.wild.', 'empty.', 'nothing.', 'nothing.below.www.'];

  /** What it warns of, as text. @param trusted records of DNSKEY */
  async function warnings(name: string, trusted = ''): Promise<string> {
    const dnsviz = place('venv/bin/dnsviz');
    const probed = path.join(directory, `${name}.json`);
    const keys = path.join(directory, `${name}.keys`);
    writeFileSync(keys, trusted);
    const names = kinds.map((kind) => kind + name);
    // Of all zones that it would come to, else it asks the name servers of the world.
    const servers = [
      `example.com+:${parent.address}`,
      `${name}:127.0.0.1:${port}`,
      `${service.platform.config.dnsDomain}+:127.0.0.1:${port}`,
    ];
    const limits = { maxBuffer: 64 << 20, timeout: 60_000 };
    const options = ['-A', '-4', '-a', 'example.com', ...servers.flatMap((one) => ['-x', one]), '-o', probed];
    await run(dnsviz, ['probe', ...options, ...names], limits);
    const grok = ['grok', '-P', '-l', 'warning', '-r', probed, ...(trusted ? ['-t', keys] : [])];
    return (await run(dnsviz, grok, limits)).stdout;
  }

  async function dnskeys(name: string): Promise<string> {
    const args = ['@127.0.0.1', '-p', String(port), '+noall', '+answer', 'DNSKEY', name];
    return (await run('dig', args)).stdout;
  }

  test(
    'a zone without signatures: no warning',
    async () => {
      await makeZone('plain.example.com');
      expect(await warnings('plain.example.com')).toBe('');
    },
    RUN_MS,
  );

  test(
    'a signed zone: no warning',
    async () => {
      const zone = await makeZone('signed.example.com');
      const enabled = await service.call('POST', `/v2/dns_zones/${zone.id}/dnssec`);
      expect(enabled.status).toBe(202);
      const [{ key_tag, algorithm, digest_type, digest }] = enabled.body.ds_records;
      await parent.delegate(zone.name, zone.name_servers, [`${key_tag} ${algorithm} ${digest_type} ${digest}`]);
      let keys = '';
      for (let turn = 0; turn < 100 && !keys.includes('DNSKEY'); turn += 1) keys = await dnskeys('signed.example.com');
      expect(await warnings('signed.example.com', keys)).toBe('');
    },
    RUN_MS,
  );
});
