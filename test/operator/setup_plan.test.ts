/** @user any */
// What `platform setup` makes of the words of its operator: the domain, names, records, and the text of the settings.
import os from 'node:os';
import { loadConfig } from '../../core/config';
import { parseDomain } from '../../server/setup/domain';
import { nameServerAddresses, ownAddresses } from '../../server/setup/own_addresses';
import { hasNameServer, setupPlanOf, type Choice } from '../../server/setup/plan';
import { recordTable, zoneLines } from '../../server/setup/record_text';
import { conflictsWith, readSettings, withSettings } from '../../server/setup/settings_text';

const CHOICE: Choice = {
  domain: 'example.com',
  email: 'ops@example.com',
  addresses: ['192.0.2.1'],
  acmeDirectory: 'https://ca.example/dir',
  acmeCaFile: null,
  nameServer: false,
  listen: ['192.0.2.1'],
  ports: { http: 80, tls: 443 },
};

test.each([
  ['example.com', 'example.com'],
  ['Example.COM.', 'example.com'],
  ['  example.com\n', 'example.com'],
  ['bücher.example', 'xn--bcher-kva.example'],
  ['shop.example.co.uk', 'shop.example.co.uk'],
])('the domain %j is %s', (given, name) => expect(parseDomain(given, '--domain')).toBe(name));

test.each([
  ['https://example.com/', 'not a URL or an address of mail: --domain example.com'],
  ['example.com/dashboard', 'not a URL or an address of mail: --domain example.com'],
  ['ops@example.com', 'not a URL or an address of mail: --domain example.com'],
  ['192.0.2.1', 'is an IP address'],
  ['[2001:db8::1]', 'is an IP address'],
  ['2001:db8::1', 'is an IP address'],
  ['*.example.com', 'Give the domain: --domain example.com'],
  ['co.uk', 'is a public suffix'],
  ['com', 'is not a domain'],
  ['localhost', 'is not a domain'],
  ['platform.localhost', 'is not in the public DNS'],
  ['server.internal', 'is not in the public DNS'],
  ['exa mple.com', 'is not a domain'],
  ['-example.com', 'is not a domain'],
  ['', 'is not a domain'],
  ['example.com:8443', 'is not a domain'],
])('%j is refused with what to do', (given, reason) => {
  expect(() => parseDomain(given, '--domain')).toThrow(reason);
});

test('records and settings follow from the domain and the addresses', () => {
  const plan = setupPlanOf({ ...CHOICE, addresses: ['192.0.2.1', '2001:db8::1'] }, loadConfig({}));
  expect(recordTable(plan.records, 'example.com').split('\n').slice(0, 5)).toEqual([
    '  Name      Type  Value        For',
    '  platform  A     192.0.2.1    dashboard and API',
    '  platform  AAAA  2001:db8::1  dashboard and API',
    '  *.apps    A     192.0.2.1    applications',
    '  *.apps    AAAA  2001:db8::1  applications',
  ]);
  expect(zoneLines(plan.records).split('\n')[0]).toBe('  platform.example.com. 300 IN A 192.0.2.1');
  expect(plan.settings).toEqual({
    BASE_URL: 'https://platform.example.com',
    APPS_DOMAIN: 'apps.example.com',
    INGRESS_LISTEN: '::',
    INGRESS_PORT: '80',
    INGRESS_TLS_PORT: '443',
    ACME_DIRECTORY: 'https://ca.example/dir',
    ACME_EMAIL: 'ops@example.com',
    S3_URL: 'https://s3.example.com',
    REGISTRY_HOST: 'registry.example.com',
    SMTP_HOST: 'mail.example.com',
    SMTP_LISTEN: '::',
  });
});

test('what is off needs no name, and an own name server is delegated to', () => {
  const config = loadConfig({ S3_PORT: '0', REGISTRY_PORT: '0', SMTP_PORTS: '0' });
  const plan = setupPlanOf({ ...CHOICE, appsDomain: 'apps.example.net', nameServer: true }, config);
  expect(zoneLines(plan.records).split('\n')).toEqual([
    '  platform.example.com. 300 IN A 192.0.2.1',
    '  *.apps.example.net. 300 IN A 192.0.2.1',
    '  ns1.dns.example.com. 300 IN A 192.0.2.1',
    '  dns.example.com. 300 IN NS ns1.dns.example.com.',
    '  _acme-challenge.apps.example.net. 300 IN NS ns1.dns.example.com.',
  ]);
  expect(recordTable(plan.records, 'example.com')).toMatch(/^ {2}\*\.apps\.example\.net\. +A /m);
  expect(plan.settings).toMatchObject({ DNS_DOMAIN: 'dns.example.com', DNS_LISTEN: '192.0.2.1' });
  expect(plan.settings.S3_URL).toBeUndefined();
  // A later setup keeps it.
  expect(
    [plan.settings, { BASE_URL: 'https://platform.example.com' }].map((set) => hasNameServer(loadConfig(set))),
  ).toEqual([true, false]);
});

test('a name server listens at the addresses of its records, behind NAT at all, never at one of the link', () => {
  const usual = { netmask: '', mac: '', internal: false, cidr: null };
  const inet6 = (address: string) => ({ ...usual, address, family: 'IPv6' as const, scopeid: 0 });
  const inet = (address: string) => ({ ...usual, address, family: 'IPv4' as const });
  const eth0 = [inet('192.0.2.1'), inet6('2001:db8::1'), inet6('fe80::fc:ff:fe00:1'), inet('169.254.7.1')];
  const spy = jest.spyOn(os, 'networkInterfaces').mockReturnValue({ eth0, docker0: [inet('172.17.0.1')] });
  try {
    expect(ownAddresses()).toEqual(['192.0.2.1', '2001:db8::1', '172.17.0.1']);
    expect(nameServerAddresses(['192.0.2.1', '2001:db8::1'])).toEqual(['192.0.2.1', '2001:db8::1']);
    expect(nameServerAddresses(['198.51.100.7'])).toEqual(['192.0.2.1', '2001:db8::1', '172.17.0.1']);
  } finally {
    spy.mockRestore();
  }
});

test('applications cannot have the domain of the dashboard', () => {
  expect(() => setupPlanOf({ ...CHOICE, appsDomain: 'example.com' }, loadConfig({}))).toThrow(
    'platform.example.com would be below example.com',
  );
});

const WANTED = { BASE_URL: 'https://platform.example.com', INGRESS_PORT: '80' };
const OWN = `# Ours, since 2024\nPLATFORM_DATA_DIR=/data\n\nLOG_LEVEL='debug'   # for now\n`;

test('settings go into one block, and what the operator has written stays', () => {
  const text = withSettings(OWN, WANTED);
  expect(text.startsWith(OWN)).toBe(true);
  expect(readSettings(text)).toEqual({ ...readSettings(OWN), ...WANTED });
  expect(withSettings(text, WANTED)).toBe(text);
  const below = `${text}RATE_LIMIT_READ=5\n`;
  const moved = withSettings(below, { ...WANTED, BASE_URL: 'https://platform.example.net' });
  expect(moved).toBe(below.replace('platform.example.com', 'platform.example.net'));
  expect(withSettings(below, {})).toBe(`${OWN}RATE_LIMIT_READ=5\n`);
});

test('lines that say otherwise are conflicts, and become comments only where that is asked for', () => {
  const own = `${OWN}export INGRESS_PORT=8000\nBASE_URL=https://platform.example.com\nINGRESS_PORT = "8001"`;
  expect(conflictsWith(own, WANTED)).toEqual([{ name: 'INGRESS_PORT', value: '8001', wanted: '80' }]);
  const text = withSettings(own, WANTED);
  expect(text).toContain('# export INGRESS_PORT=8000\n');
  expect(readSettings(text)).toEqual({ ...readSettings(OWN), ...WANTED });
  expect(text.match(/BASE_URL/g)).toHaveLength(1);
});

test.each([
  ['a value over several lines', 'NOTE="first\nINGRESS_PORT=1\nlast"\nINGRESS_PORT=8000\n'],
  ['a value that looks like the block', 'NOTE="# Written by `platform setup`, which replaces these lines:"\n'],
  ['an empty file', ''],
  ['Windows line ends', 'LOG_LEVEL=info\r\nINGRESS_PORT=8000\r\n'],
  ['no line end', 'LOG_LEVEL=info'],
])('with %s, either the meaning of all others stays or nothing is changed', (_, own) => {
  let text: string;
  try {
    text = withSettings(own, WANTED);
  } catch (error) {
    return expect((error as Error).message).toContain('Correct them by hand');
  }
  const { INGRESS_PORT: _before, ...others } = readSettings(own);
  expect(readSettings(text)).toEqual({ ...others, ...WANTED });
});
