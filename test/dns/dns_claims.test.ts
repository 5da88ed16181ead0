// Operations: createDnsZone, verifyDnsZone.
// Zones of one name, or of names above and below each other, in several projects: who is answered is decided by the
// parent zone alone, and until it has decided nobody is (docs/DNS.md).
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { startDnsParent, type DnsParent } from '../support/dns/dns_parent';
import { freePort } from '../support/processes/free_port';
import { startService, type Answer, type TestService } from '../support/service';
import { needs } from '../support/runner/programs';
import { withConfig } from '../support/config';

type Body = Answer['body'];
interface Tenant {
  key: string;
  id: string;
}

const run = promisify(execFile);
const ADDRESS = '127.0.0.3';
const REFUSED = 'REFUSED ';

let service: TestService;
let parent: DnsParent;
let port: number;
let a: Tenant;
let b: Tenant;

needs('dig', 'named').describe('claims of several projects', () => {
  beforeAll(async () => {
    port = await freePort();
    parent = await startDnsParent('example.com', port);
    // At the port of the parent, and known to the resolvers: so the walk from the root may come to it.
    service = await startService({
      worker: true,
      settings: {
        ...{
          DNS_PORT: String(port),
          DNS_LISTEN: ADDRESS,
          DNS_IPS: ADDRESS,
          ...withConfig({ dnsRoots: [parent.address] }),
        },
        DNS_RESOLVERS: `${ADDRESS}:${port}`,
      },
    });
    a = await service.newProject();
    b = await service.newProject();
  });
  afterAll(async () => {
    await service?.close();
    await parent?.close();
  });

  test('a second claim ends the answers of the first, and only the one that is delegated is answered', async () => {
    const name = newName();
    const mine = await zoneWith(a, name, '192.0.2.1');
    await until(name, 'NOERROR 192.0.2.1');
    const theirs = await zoneWith(b, name, '192.0.2.2');
    await until(name, REFUSED);
    await parent.delegate(name, theirs.name_servers);
    // Nothing has looked at the parent yet.
    expect(await answerOf(name)).toBe(REFUSED);
    expect(await zoneOf(a, mine)).toMatchObject({
      status: 'pending',
      status_reason: expect.stringContaining('Another project has a zone of this name'),
    });
    await verify(b, theirs);
    await until(name, 'NOERROR 192.0.2.2');
    expect((await zoneOf(a, mine)).status).toBe('pending');
  });

  test('a zone is answered in the step that finds its delegation', async () => {
    const name = newName();
    await zoneWith(a, name, '192.0.2.1');
    const theirs = await zoneWith(b, name, '192.0.2.2');
    await until(name, REFUSED);
    await parent.delegate(name, theirs.name_servers);
    await checkNow(theirs);
    await until(name, 'NOERROR 192.0.2.2');
    expect((await zoneOf(b, theirs)).status).toBe('active');
  });

  test.each(['below', 'above'])('a claim of a name %s another one: neither is answered for it', async (where) => {
    const name = newName();
    const [first, second] = where === 'below' ? [`www.${name}`, name] : [name, `www.${name}`];
    await zoneWith(a, first, '192.0.2.1');
    await until(first, 'NOERROR 192.0.2.1');
    const theirs = await zoneWith(b, second, '192.0.2.2');
    await until(`www.${name}`, REFUSED);
    await parent.delegate(second, theirs.name_servers);
    expect(await answerOf(`www.${name}`)).toBe(REFUSED);
    await verify(b, theirs);
    await until(second, 'NOERROR 192.0.2.2');
    // The zone of the parent decides about the names below it; a zone of the child about its own only.
    await until(first, where === 'below' ? 'NXDOMAIN ' : REFUSED);
  });

  test('a delegation that outlives its zone does not lead to the zone of another project', async () => {
    const name = newName();
    const gone = await zoneWith(b, name, '192.0.2.2');
    await parent.delegate(name, gone.name_servers);
    await verify(b, gone);
    await call(b, 'DELETE', `/v2/dns_zones/${gone.id}`);
    const taken = await zoneWith(a, name, '192.0.2.1');
    await checked(a, taken);
    expect(await answerOf(name)).toBe(REFUSED);
    expect((await zoneOf(a, taken)).status_reason).toContain('belong to another zone');
    // Neither does it prove anything for names below, where our own name server would be asked about itself.
    const child = await zoneWith(a, `www.${name}`, '192.0.2.1');
    await checked(a, child);
    expect((await verify(a, child)).body).toMatchObject({ status: 'pending', delegation: { state: 'not_delegated' } });
    // Made again, the zone has another label: the old delegation does not lead to it either.
    const again = await zoneWith(b, name, '192.0.2.3');
    await until(name, REFUSED);
    await parent.delegate(name, again.name_servers);
    await verify(b, again);
    await until(name, 'NOERROR 192.0.2.3');
    await until(`www.${name}`, 'NXDOMAIN ');
  });

  test('a zone below one of the same project that is delegated needs no delegation of its own', async () => {
    const name = newName();
    const top = await zoneWith(a, name, '192.0.2.1');
    await parent.delegate(name, top.name_servers);
    await verify(a, top);
    const child = await zoneWith(a, `www.${name}`, '192.0.2.9');
    expect((await verify(a, child)).body).toMatchObject({ status: 'active', delegation: { state: 'delegated' } });
    await until(`www.${name}`, 'NOERROR 192.0.2.9');
  });

  test('a zone that was active gives way at once when the parent names another one', async () => {
    const name = newName();
    const theirs = await zoneWith(b, name, '192.0.2.2');
    const mine = await zoneWith(a, name, '192.0.2.1');
    const child = await zoneWith(a, `www.${name}`, '192.0.2.1');
    await parent.delegate(name, mine.name_servers);
    await verify(a, mine);
    await verify(a, child);
    await until(`www.${name}`, 'NOERROR 192.0.2.1');
    // Listed beside the other one, the first stays.
    await parent.delegate(name, [...mine.name_servers, ...theirs.name_servers]);
    expect((await verify(b, theirs)).body.code).toBe('domain_taken');
    await parent.delegate(name, theirs.name_servers);
    await verify(b, theirs);
    await until(name, 'NOERROR 192.0.2.2');
    await until(`www.${name}`, 'NXDOMAIN ');
    expect([(await zoneOf(a, mine)).status, (await zoneOf(a, child)).status]).toEqual(['moved', 'moved']);
  });

  test('claims that are made at the same time are answered by nobody', async () => {
    for (let turn = 0; turn < 5; turn += 1) {
      const name = newName();
      await Promise.all([zoneWith(a, name, '192.0.2.1'), zoneWith(b, name, '192.0.2.2')]);
      await until(name, REFUSED);
      await new Promise((resolve) => setTimeout(resolve, 300));
      expect(await answerOf(name)).toBe(REFUSED);
    }
  });

  test('the name servers are asked on while a claim comes and goes', async () => {
    const name = newName();
    await zoneWith(a, name, '192.0.2.1');
    await until(name, 'NOERROR 192.0.2.1');
    const claim = await zoneWith(b, name, '192.0.2.2');
    await until(name, REFUSED);
    await call(b, 'DELETE', `/v2/dns_zones/${claim.id}`);
    await until(name, 'NOERROR 192.0.2.1');
  });

  test('a zone that takes a name over starts above the serial of the other one', async () => {
    const name = newName();
    const theirs = await zoneWith(b, name, '192.0.2.2');
    const mine = await zoneWith(a, name, '192.0.2.1');
    await parent.delegate(name, theirs.name_servers);
    await verify(b, theirs);
    await until(name, 'NOERROR 192.0.2.2');
    await service.sql('update dns_zones set serial = serial + 1000000 where id = $1', [theirs.id]);
    await call(b, 'POST', `/v2/dns_zones/${theirs.id}/records`, { type: 'A', name: 'www', value: '192.0.2.2' });
    await until(`www.${name}`, 'NOERROR 192.0.2.2');
    const { serial } = await zoneOf(b, theirs);
    await parent.delegate(name, mine.name_servers);
    await verify(a, mine);
    await until(name, 'NOERROR 192.0.2.1');
    expect((await zoneOf(a, mine)).serial).toBeGreaterThan(serial);
  });
});

let count = 0;
const newName = (): string => `claim${(count += 1)}.example.com`;

const call = ({ key, id }: Tenant, method: string, path: string, body?: object): Promise<Answer> =>
  service.call(method, path, { key, project: id, ...(body && { body }) });

const zoneOf = async (tenant: Tenant, { id }: Body): Promise<Body> =>
  (await call(tenant, 'GET', `/v2/dns_zones/${id}`)).body;

const verify = (tenant: Tenant, { id }: Body): Promise<Answer> => call(tenant, 'POST', `/v2/dns_zones/${id}/verify`);

async function zoneWith(tenant: Tenant, name: string, address: string): Promise<Body> {
  const made = await call(tenant, 'POST', '/v2/dns_zones', { name });
  expect([made.status, made.text]).toEqual([201, expect.anything()]);
  await call(tenant, 'POST', `/v2/dns_zones/${made.body.id}/records`, { type: 'A', value: address });
  return made.body;
}

/** What the minutes until the next check would do. */
async function checkNow({ id }: Body): Promise<void> {
  const earlier = `now() - interval '1 hour'`;
  await service.sql(`update dns_zones set last_checked_at = ${earlier}, next_at = now() where id = $1`, [id]);
}

async function checked(tenant: Tenant, zone: Body): Promise<void> {
  for (let turn = 0; turn < 100; turn += 1) {
    if ((await zoneOf(tenant, zone)).last_checked_at) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error('the parent was not asked');
}

/** `NOERROR 192.0.2.1` */
async function answerOf(name: string): Promise<string> {
  const { stdout } = await run('dig', [`@${ADDRESS}`, '-p', String(port), '+tries=1', '+time=2', '+norec', name, 'A']);
  const addresses = [...stdout.matchAll(/\sIN\s+A\s+(\S+)$/gm)].map(([, address]) => address);
  return `${/status: (\w+)/.exec(stdout)?.[1]} ${addresses.join(' ')}`;
}

async function until(name: string, expected: string): Promise<void> {
  for (let turn = 0; turn < 100; turn += 1) {
    if ((await answerOf(name).catch(() => '')) === expected) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  expect(await answerOf(name)).toBe(expected);
}
