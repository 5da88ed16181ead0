/** @user any */
// What `platform setup` finds in the way before it changes anything: one sentence each, with what to do.
import { once } from 'node:events';
import http from 'node:http';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { loadConfig } from '../../core/config';
import { checkDelegations, delegationReader } from '../../server/setup/check_delegations';
import { setUpInstallation, type Parts } from '../../server/setup/set_up';
import { setupPlanOf, type Choice } from '../../server/setup/plan';
import { startDnsParent } from '../support/dns/dns_parent';
import { startDnsServer, type DnsServer } from '../support/dns/dns_server';
import { freePort } from '../support/processes/free_port';
import { needs } from '../support/runner/programs';

const HERE = '127.0.0.1';
const ELSEWHERE = '127.0.0.9';
const NAMES = ['platform', 's3', 'registry', 'mail'].map((label) => `${label}.example.com`);

let dns: DnsServer;
let other: DnsServer;
let authority: http.Server;
let directory: Record<string, unknown>;
let answer: (response: http.ServerResponse) => void;
let choice: Choice;
let reported: string[];
let delegations: Record<string, Awaited<ReturnType<Parts['delegation']>>>;
const opened: Server[] = [];

beforeEach(async () => {
  [dns, other] = [await startDnsServer(), await startDnsServer()];
  for (const server of [dns, other]) point(server, HERE);
  directory = {
    newOrder: 'https://ca.example/order',
    meta: { termsOfService: 'https://ca.example/terms', caaIdentities: ['ca.example'] },
  };
  answer = (response) => response.end(JSON.stringify(directory));
  // As Pebble does, which refuses what RFC 8555 section 6.1 forbids.
  authority = http.createServer((request, response) =>
    request.headers['user-agent'] ? answer(response) : response.writeHead(400).end(),
  );
  choice = {
    ...{ domain: 'example.com', email: null, addresses: [HERE], acmeDirectory: await listen(authority) },
    ...{ acmeCaFile: null, nameServer: false, listen: [HERE] },
    ports: { http: await freePort(), tls: await freePort() },
  };
  reported = [];
  delegations = {};
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((server) => new Promise((resolve) => server.close(resolve))));
  await Promise.all([dns.close(), other.close()]);
});

function point(server: DnsServer, address: string): void {
  for (const name of [...NAMES, '*.apps.example.com']) server.set(name, 'A', [address]);
}

async function listen(server: Server, host = HERE, port = 0): Promise<string> {
  server.listen(port, host);
  await once(server, 'listening');
  opened.push(server);
  return `http://${host}:${(server.address() as AddressInfo).port}/directory`;
}

/** A stranger's web server on the port of visitors, at the other address; after the check whose the ports are. */
function stranger(handle: http.RequestListener): void {
  let started: Promise<string> | undefined;
  dns.onAnswer = () => (started ??= listen(http.createServer(handle), ELSEWHERE, choice.ports.http));
}

function check(more: Partial<Parts> = {}): Promise<string> {
  const parts: Parts = {
    ...{ settings: null, service: null, environment: { SMTP_PORTS: String(choice.ports.tls) } },
    ...{ resolvers: [dns.address, other.address], timeSources: [], interfaces: [HERE] },
    delegation: async (name) => delegations[name] ?? null,
    ...{ proof: () => null, move: async () => 0, follow: async () => [], recordsWithinMs: 0, pollMs: 20 },
    ...{ report: (line) => void reported.push(line), signal: new AbortController().signal },
    certificateError: async () => null,
    ...more,
  };
  return setUpInstallation(choice, { checkOnly: true, force: false }, parts);
}

test('everything is in order where all names lead here', async () => {
  expect(await check()).toBe('checked');
  expect(reported).toEqual(
    expect.arrayContaining([
      expect.stringContaining('  platform  A     127.0.0.1  dashboard and API'),
      expect.stringContaining('platform.example.com. 300 IN A 127.0.0.1'),
      'platform.example.com leads to 127.0.0.1.',
      'Going on accepts its terms of service: https://ca.example/terms',
      'All names lead to this machine.',
    ]),
  );
});

test('a machine behind a router is told so, and believes its names', async () => {
  choice = { ...choice, addresses: [] };
  expect(await check()).toBe('checked');
  expect(reported.join('\n')).toContain('platform  A     <address of this machine>');
  expect(reported.join('\n')).toContain('Name the address of the router in front with --ip');
});

test('records are waited for', async () => {
  for (const server of [dns, other]) server.set('s3.example.com', 'A', []);
  let asked = 0;
  dns.onAnswer = (name) => {
    if (name === 's3.example.com' && (asked += 1) > 6) [dns, other].forEach((server) => point(server, HERE));
  };
  expect(await check({ recordsWithinMs: 20_000 })).toBe('checked');
  expect(reported).toEqual(
    expect.arrayContaining([
      's3.example.com has no address yet: create the record.',
      's3.example.com leads to 127.0.0.1.',
    ]),
  );
});

test('an interrupted wait changes nothing', async () => {
  point(dns, ELSEWHERE);
  const interrupted = new AbortController();
  const waiting = check({ recordsWithinMs: 60_000, signal: interrupted.signal });
  setTimeout(() => interrupted.abort(), 200);
  await expect(waiting).rejects.toThrow('Interrupted. Nothing was changed.');
});

describe('names', () => {
  const refused = (reason: string, more?: Partial<Parts>) => expect(check(more)).rejects.toThrow(reason);

  test('that lead elsewhere are named with where they should lead', async () => {
    for (const server of [dns, other]) point(server, ELSEWHERE);
    await refused(
      'platform.example.com leads to 127.0.0.9, which is not this machine. Its record must lead to 127.0.0.1; --ip ' +
        'names another address of this machine.',
    );
  });
  test('of which only some are right', async () => {
    for (const server of [dns, other]) server.set('registry.example.com', 'A', []);
    const failure = (await check().catch((error: Error) => error)) as Error;
    expect(failure.message).toBe('registry.example.com has no address yet: create the record. Nothing was changed.');
  });
  test('whose AAAA record leads elsewhere', async () => {
    for (const server of [dns, other]) server.set('platform.example.com', 'AAAA', ['2001:db8::9']);
    await refused(
      'The AAAA record of platform.example.com leads to 2001:db8::9, which is not this machine: remove the record',
    );
  });
  test('with an AAAA record alone', async () => {
    choice = { ...choice, addresses: [HERE, '::1'] };
    for (const server of [dns, other]) {
      server.set('platform.example.com', 'A', []);
      server.set('platform.example.com', 'AAAA', ['::1']);
    }
    await refused('platform.example.com has no IPv4 address yet: create the A record.');
  });
  test('that only one resolver knows are not there yet', async () => {
    other.set('mail.example.com', 'A', []);
    await refused('mail.example.com has no address yet');
  });
  test('that a wildcard answers for', async () => {
    for (const server of [dns, other]) {
      server.set('s3.example.com', 'A', []);
      server.set('*.example.com', 'A', [ELSEWHERE]);
    }
    await refused('s3.example.com has no record of its own: the wildcard *.example.com leads it to 127.0.0.9.');
    for (const server of [dns, other]) server.set('*.example.com', 'A', [HERE]);
    expect(await check()).toBe('checked');
    expect(reported.join('\n')).toContain('gives this answer to every name, also to a misspelt one');
  });
  test('that no resolver answers about', async () => {
    for (const server of [dns, other]) server.fail('platform.example.com');
    await refused('No DNS resolver answered about platform.example.com. Check the network of this machine');
  });
  test('of applications without a wildcard', async () => {
    for (const server of [dns, other]) {
      server.set('*.apps.example.com', 'A', []);
      server.set('apps.example.com', 'A', [HERE]);
    }
    await refused('*.apps.example.com has no address yet: create the record.');
  });
  test('for which CAA records forbid the authority', async () => {
    dns.set('example.com', 'CAA', ['issue other.example', 'iodef mailto:ops@example.com']);
    await refused(
      'A CAA record at example.com lets only other.example issue certificates for platform.example.com. Add the ' +
        'record example.com CAA 0 issue "ca.example"',
      { resolvers: [dns.address] },
    );
    dns.set('example.com', 'CAA', ['issue ;']);
    await refused('lets no authority issue certificates', { resolvers: [dns.address] });
    dns.set('platform.example.com', 'CAA', ['issue ca.example; validationmethods=http-01']);
    await refused('for *.apps.example.com', { resolvers: [dns.address] });
    dns.set('example.com', 'CAA', ['issue other.example', 'issue ca.example']);
    expect(await check({ resolvers: [dns.address] })).toBe('checked');
  });
});

describe('the name server', () => {
  const server = ['ns1.dns.example.com'];
  const delegated = (name_servers: string[], glue = [HERE]) => ({
    ...{ name_servers, glue, ds_records: [], own_parent: null },
  });
  const refused = async (reason: string): Promise<void> => {
    const failure = (await check().catch((error: Error) => error)) as Error;
    expect(failure.message).toBe(`${reason} Nothing was changed.`);
  };
  beforeEach(() => {
    choice = { ...choice, nameServer: true };
    delegations = {
      'dns.example.com': delegated(server),
      '_acme-challenge.apps.example.com': delegated(server, []),
    };
  });

  test('is in order where both names are delegated to it, or nobody above them answers', async () => {
    expect(await check()).toBe('checked');
    expect(reported).toContain('_acme-challenge.apps.example.com is delegated to ns1.dns.example.com.');
    delegations = {};
    expect(await check()).toBe('checked');
    expect(reported).toContain('It is not known whether dns.example.com is delegated: no server above it answered.');
  });
  test('to which the challenges are not delegated is told so before any order', async () => {
    delegations['_acme-challenge.apps.example.com'] = delegated([]);
    await refused(
      '_acme-challenge.apps.example.com is not delegated yet: create its NS record, with the value ' +
        'ns1.dns.example.com.',
    );
  });
  test('beside another one, or instead of which another one answers', async () => {
    delegations['_acme-challenge.apps.example.com'] = delegated(['ns.other.example', ...server]);
    await refused(
      '_acme-challenge.apps.example.com is delegated to ns.other.example as well: remove these NS records.',
    );
    delegations['_acme-challenge.apps.example.com'] = delegated(['ns.other.example']);
    await refused(
      '_acme-challenge.apps.example.com is delegated to ns.other.example. Its NS record must have the value ' +
        'ns1.dns.example.com.',
    );
  });
  test('has an address in the zone above, and it is that of this machine', async () => {
    delegations['dns.example.com'] = delegated(server, []);
    await refused(
      'ns1.dns.example.com has no address yet: create the record, beside the NS record of dns.example.com.',
    );
    delegations['dns.example.com'] = delegated(server, [ELSEWHERE]);
    await refused('ns1.dns.example.com leads to 127.0.0.9, which is not this machine. It must lead to 127.0.0.1.');
    for (const one of [dns, other]) one.set('ns1.dns.example.com', 'A', [HERE]);
    delegations['dns.example.com'] = delegated(server, []);
    expect(await check()).toBe('checked');
  });
  test('is named in one breath with names that lack an address', async () => {
    delegations['dns.example.com'] = delegated([]);
    for (const one of [dns, other]) one.set('s3.example.com', 'A', []);
    await refused(
      's3.example.com has no address yet: create the record. dns.example.com is not delegated yet: create its NS ' +
        'record, with the value ns1.dns.example.com.',
    );
  });
});

needs('named').test('what BIND lists above the names is what is judged', async () => {
  const parent = await startDnsParent('com', await freePort());
  const config = { ...loadConfig({}), dnsRoots: [parent.address] };
  const found = async (): Promise<string[]> => {
    const plan = setupPlanOf({ ...choice, nameServer: true }, config);
    const read = delegationReader(config, 'example.com', [dns.address]);
    return (await checkDelegations(plan, [dns.address], read)).map(({ status, detail }) => `${status}: ${detail}`);
  };
  const server = ['ns1.dns.example.com'];
  try {
    expect(await found()).toEqual([
      'missing: dns.example.com is not delegated yet: create its NS record, with the value ns1.dns.example.com.',
      expect.stringMatching(/^missing: _acme-challenge\.apps\.example\.com is not delegated yet/),
    ]);
    await parent.delegate('_acme-challenge.apps.example.com', server);
    await parent.delegate('dns.example.com', server, [], [ELSEWHERE]);
    expect((await found())[0]).toBe(
      'wrong: ns1.dns.example.com leads to 127.0.0.9, which is not this machine. It must lead to 127.0.0.1.',
    );
    await parent.delegate('dns.example.com', server, [], [HERE]);
    expect(await found()).toEqual([
      'ok: dns.example.com is delegated to ns1.dns.example.com.',
      'ok: _acme-challenge.apps.example.com is delegated to ns1.dns.example.com.',
    ]);
  } finally {
    await parent.close();
  }
});

describe('what answers at the names', () => {
  beforeEach(() => {
    choice = { ...choice, addresses: [ELSEWHERE] };
    for (const server of [dns, other]) point(server, ELSEWHERE);
  });
  // A listener of ours for all addresses would be in the way of the stranger on this machine.
  const refused = async (reason: string): Promise<void> => expect(check({ listenOn: HERE })).rejects.toThrow(reason);

  test('is another web server', async () => {
    stranger((_, response) => response.writeHead(404, { Server: 'nginx' }).end('not here'));
    await refused(
      'At platform.example.com (127.0.0.9), another server answers (nginx) with status 404, not this machine.',
    );
  });
  test('is a proxy that ends TLS', async () => {
    stranger((_, response) =>
      response.writeHead(301, { Server: 'cloudflare', 'CF-Ray': '1', Location: 'https://platform.example.com/' }).end(),
    );
    await refused('a proxy (cloudflare) ends TLS and redirects to https://platform.example.com/.');
  });
  test('is a proxy that passes on', async () => {
    stranger((request, response) => {
      const onward = {
        host: HERE,
        port: choice.ports.http,
        path: request.url,
        headers: { host: request.headers.host },
      };
      http.get(onward, (found) => {
        response.writeHead(found.statusCode ?? 0, { 'CF-Ray': '1', Server: 'cloudflare' });
        found.pipe(response);
      });
    });
    await refused('A proxy (cloudflare) stands between platform.example.com (127.0.0.9) and this machine.');
  });
  test('is a proxy that passes plain HTTP on, and nothing at the port of TLS', async () => {
    stranger((request, response) => {
      http.get({ host: HERE, port: choice.ports.http, path: request.url }, (found) => found.pipe(response));
    });
    await refused(`Port ${choice.ports.tls} of platform.example.com (127.0.0.9) cannot be reached (ECONNREFUSED)`);
  });
  test('is nothing, at an address that is not of an interface: a router may not lead back', async () => {
    expect(await check({ listenOn: HERE })).toBe('checked');
    expect(reported.at(-1)).toContain('the certificate authority finds out');
  });
  test('is nothing, at an address of this machine', async () => {
    const closed = check({ listenOn: HERE, interfaces: [ELSEWHERE] });
    await expect(closed).rejects.toThrow('cannot be reached (ECONNREFUSED): open it in the firewall of this machine.');
  });
});

describe('this machine and the authority', () => {
  const refused = (reason: string | RegExp, more?: Partial<Parts>) => expect(check(more)).rejects.toThrow(reason);

  test('a port that another program has', async () => {
    await listen(createServer(), HERE, choice.ports.tls);
    await refused(
      `Port ${choice.ports.tls} is taken by node (process ${process.pid}). Stop it for good, or give it another port.`,
    );
  });
  test('a mail server of this machine leaves mail out, and nothing else', async () => {
    const port = await freePort();
    await listen(createServer(), HERE, port);
    expect(await check({ environment: { SMTP_PORTS: String(port) } })).toBe('checked');
    expect(reported[0]).toContain(`Port ${port} is taken by node`);
  });
  test('a clock that is wrong', async () => {
    answer = (response) => {
      response.setHeader('Date', new Date(Date.now() - 4 * 3_600_000).toUTCString());
      response.end(JSON.stringify(directory));
    };
    await refused('The clock of this machine is 4 hours fast, and certificates would count as invalid. Set it:');
    const right = http.createServer((_, response) => response.end());
    expect(await check({ timeSources: [await listen(right)] })).toBe('checked');
  });
  test('an authority that is not there, busy, broken, or none', async () => {
    answer = (response) => response.writeHead(429).end();
    await refused('accepts no more requests at the moment');
    answer = (response) => response.writeHead(503).end();
    await refused('is out of order (status 503)');
    answer = (response) => response.end('<html>');
    await refused('is not the directory of a certificate authority (RFC 8555): status 200');
    directory = { ...directory, meta: { externalAccountRequired: true } };
    answer = (response) => response.end(JSON.stringify(directory));
    await refused('requires an external account binding');
    choice = { ...choice, acmeDirectory: `http://127.0.0.1:${await freePort()}/dir` };
    await refused(/cannot be reached: ECONNREFUSED/);
  });
  test('roots that cannot be read', async () => {
    choice = { ...choice, acmeCaFile: '/nowhere/roots.pem' };
    await refused('--acme-ca /nowhere/roots.pem cannot be read: ENOENT.');
  });
});
