// What a project reaches of the world behind this host: a network namespace stands for it, with a public address, a
// metadata service, private addresses and a resolver.
import { spawn, type ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { run } from '../../../core/process/command';
import { driverContext } from '../../../core/driver';
import { openUserTrial, type UserTrial } from './network_as_user';
import { openNetworkTrial, output, type NetworkTrial } from './network_trial';
import { makePair } from '../processes/outside_host';
import { firstOutput, kill } from '../processes/processes';

/** Once the anycast address of relays, today nobody's. */
const PUBLIC = '192.88.99.2';
const HERE = '192.88.99.1';
/** As that of a service of a cluster: nobody has it. */
const VIRTUAL = '192.88.99.77';
const METADATA = '169.254.169.254';
const RESOLVER = '10.98.76.53';
const PRIVATE = ['10.98.76.54', '172.20.9.9', '192.168.77.7', '100.64.9.9'];
const ALLOWED = '10.98.77.1';
const PORT = 7777;
const NAME = `platform-test-${process.pid}`;
const LINK = `out${process.pid}`;
/** The host of an ordinary user. */
const HOST = `${NAME}-host`;
/** Another machine beside the host, on an interface by which the host reaches the world. */
const NEIGHBOUR = { name: `${NAME}-near`, link: `near${process.pid}`, here: '192.88.98.1', address: '192.88.98.2' };

const SERVER = `
const net = require('node:net'), dgram = require('node:dgram');
const answer = (query) => {
  let end = 12;
  while (query[end] !== 0) end += query[end] + 1;
  const head = Buffer.from(query.subarray(0, 12)), question = query.subarray(12, end + 5);
  head.writeUInt16BE(0x8180, 2), head.writeUInt16BE(1, 6), head.writeUInt16BE(0, 10);
  return Buffer.concat([head, question, Buffer.from('c00c000100010000003c00040a0b0c0d', 'hex')]);
};
const servers = [53, 80, ${PORT}].map((port) => new Promise((listening) =>
  net.createServer((socket) => socket.on('error', () => {}).end('outside')).listen(port, '0.0.0.0', listening)));
const socket = dgram.createSocket('udp4');
socket.on('message', (query, { port, address }) => socket.send(answer(query), port, address));
socket.bind(53, '${RESOLVER}', () => Promise.all(servers).then(() => console.log('listens')));`;

const REMOVE = [NAME, NEIGHBOUR.name, HOST]
  .map((one) => `ip netns del ${one} 2>/dev/null`)
  .concat(
    [LINK, NEIGHBOUR.link].map((one) => `ip link del ${one} 2>/dev/null`),
    ':',
  )
  .join('; ');

const ASK = `
const { Resolver } = require("node:dns").promises, resolver = new Resolver({ timeout: 5000 });
resolver.setServers(["${RESOLVER}"]);
resolver.resolve4("name.example").then(console.log, (error) => console.log(error.code));`;

/** A datagram is a connection for the kernel that has to remember where answers go. */
const OPENED = 12_000;
const OPEN_MANY = `
const socket = require("node:dgram").createSocket("udp4");
let left = ${OPENED};
for (let port = 20000; port < 20000 + ${OPENED}; port++)
  socket.send("", port, "${PUBLIC}", () => --left || (console.log("sent"), socket.close()));`;

/** Twice in a row, 8,800 of them are not too fast. */
const OPEN_MORE = `
const socket = require("node:dgram").createSocket("udp4"), end = Date.now() + 12000;
let port = 20000;
const open = (count) => { for (; count > 0; count--) socket.send("", port++, "${PUBLIC}"); };
open(6000);
const more = setInterval(() => Date.now() < end ? open(5) : (clearInterval(more), socket.close()), 20);
socket.on("close", () => console.log("sent"));`;

const OPENINGS = { resolvers: [RESOLVER], allowed: ['10.98.77.0/24'] };
const at = (address: string, port = PORT): string => `${address}:${port}`;
const CLOSED = [at(METADATA, 80), at(RESOLVER), ...PRIVATE.map((one) => at(one))];
const OPEN = [at(PUBLIC), at(ALLOWED), at(RESOLVER, 53)];
const answers = (targets: string[], answer: string): Record<string, string> =>
  Object.fromEntries(targets.map((one) => [one, answer]));

function reachCases(trial: () => Pick<NetworkTrial, 'reach' | 'shell'>): void {
  test('a project reaches public addresses, allowed ones and its resolver, and no others', async () => {
    const all = [...OPEN, ...CLOSED];
    // This host reaches all of them.
    expect(await trial().reach('ins_host', undefined, all)).toEqual(answers(all, 'outside'));
    const found = await trial().reach('ins_out', 'prj_out', all);
    expect(found).toEqual({ ...answers(OPEN, 'outside'), ...answers(CLOSED, 'ECONNREFUSED') });
  });

  test('names are resolved through it', async () => {
    expect(await trial().shell('ins_names', 'prj_out', `exec node -e '${ASK}'`)).toEqual(["[ '10.11.12.13' ]"]);
  });
}

/** Packets to the world. */
function sent(): number {
  return Number(readFileSync(`/sys/class/net/${LINK}/statistics/tx_packets`, 'utf8'));
}

export function networkOutsideCases(): void {
  let world: ChildProcess;
  let one: NetworkTrial;
  let before: string;
  beforeAll(async () => {
    world = await makeWorld();
    await makeNeighbour();
    before = fromNeighbour();
    one = await openNetworkTrial(OPENINGS);
  }, 60_000);
  afterAll(async () => {
    await one?.close();
    await removeWorld(world);
  }, 60_000);

  reachCases(() => one);

  test('a project that opens connections without end is slowed down, and no other one', async () => {
    const [start, begin] = [sent(), Date.now()];
    expect(await one.shell('ins_many', 'prj_many', `exec node -e '${OPEN_MANY}'`)).toEqual(['sent']);
    const seconds = (Date.now() - begin) / 1000;
    expect(sent() - start).toBeGreaterThan(3900);
    expect(sent() - start).toBeLessThan(Math.min(OPENED, 4500 + 250 * seconds));
    expect(await one.reach('ins_other', 'prj_other', [at(PUBLIC)])).toEqual({ [at(PUBLIC)]: 'outside' });
    expect(await one.reach('ins_again', 'prj_many', [at(PUBLIC)])).toEqual({ [at(PUBLIC)]: 'outside' });
  });

  test('a project that keeps connections open opens no more of them, and others do', async () => {
    const start = sent();
    for (const id of ['ins_first', 'ins_second'])
      expect(await one.shell(id, 'prj_open', `exec node -e '${OPEN_MORE}'`)).toEqual(['sent']);
    expect(sent() - start).toBeGreaterThan(7900);
    expect(sent() - start).toBeLessThan(8100);
    expect(await one.reach('ins_beside_it', 'prj_other', [at(PUBLIC)])).toEqual({ [at(PUBLIC)]: 'outside' });
  }, 60_000);

  test('an address that the host itself translates is reached as what it stands for', async () => {
    const table = `test_${process.pid}`;
    const hook = 'type nat hook prerouting priority -101;';
    output('nft', `table ip ${table} {\n chain virtual {\n ${hook}\n ip daddr ${VIRTUAL} dnat to ${PUBLIC}\n }\n}`);
    try {
      expect(await one.reach('ins_virtual', 'prj_out', [at(VIRTUAL)])).toEqual({ [at(VIRTUAL)]: 'outside' });
    } finally {
      output('nft', 'delete', 'table', 'ip', table);
    }
  });

  test('the host does not forward for others because of it', async () => {
    expect(before).toBe('outside');
    const forwards = readFileSync('/proc/sys/net/ipv4/ip_forward', 'utf8').trim() === '1';
    expect(fromNeighbour()).toBe(forwards ? 'outside' : 'nothing');
    expect(await one.reach('ins_still', 'prj_out', [at(PUBLIC)])).toEqual({ [at(PUBLIC)]: 'outside' });
  });
}

/** The same for networks of an ordinary user, made with passt. */
export function userNetworkOutsideCases(): void {
  let world: ChildProcess;
  let one: UserTrial;
  beforeAll(async () => {
    await run('ip', ['netns', 'add', HOST], driverContext(20_000));
    world = await makeWorld(HOST);
    one = await openUserTrial(HOST, OPENINGS);
  }, 60_000);
  afterAll(async () => {
    await one?.close();
    await removeWorld(world);
  }, 60_000);

  reachCases(() => one);

  test('it does not reach the host, whatever listens there', async () => {
    const [near, wide] = [await one.listen('127.0.0.1'), await one.listen('0.0.0.0')];
    const targets = [at('127.0.0.1', near), at('127.0.0.1', wide), at(HERE, wide), at('0.0.0.0', wide)];
    expect(await one.reach('ins_beside', undefined, targets)).toEqual(answers(targets, 'the host'));
    expect(await one.reach('ins_inside', 'prj_out', targets)).toEqual(answers(targets, 'ECONNREFUSED'));
  });

  test('a tenant changes neither its rules nor its interfaces', async () => {
    const attempts = [
      ...['nft flush ruleset', 'nft list ruleset', 'ip link set lo down', 'ip route add 10.0.0.0/8 dev lo'],
      ...['ip link set eth0 down', 'unshare -Urn true', 'nsenter -t 1 -n true'],
    ];
    const script = attempts.map((attempt) => `(${attempt}) >/dev/null 2>&1 && echo "${attempt}"`).join('; ');
    const said = await one.shell('ins_admin', 'prj_out', `export PATH=$PATH:/usr/sbin:/sbin; ${script}; echo end`);
    expect(said).toEqual(['end']);
    expect(await one.reach('ins_after', 'prj_out', [at(METADATA, 80), at(PUBLIC)])).toEqual({
      [at(METADATA, 80)]: 'ECONNREFUSED',
      [at(PUBLIC)]: 'outside',
    });
  });
}

// While nothing forbids it, a host that forwards is a router for its neighbours.
function makeNeighbour(): Promise<void> {
  return makePair(NEIGHBOUR, [
    `ip -n ${NEIGHBOUR.name} route add default via ${NEIGHBOUR.here}`,
    `ip -n ${NAME} route add ${NEIGHBOUR.address}/32 via ${HERE}`,
    // The last of the default routes: nothing uses it.
    `ip route add default via ${NEIGHBOUR.address} dev ${NEIGHBOUR.link} metric 4000000000`,
  ]);
}

/** What it gets from the world through the host. */
function fromNeighbour(): string {
  const program = `const socket = require('net').connect(${PORT}, '${PUBLIC}');
    socket.setTimeout(3000, () => (console.log('nothing'), socket.destroy()));
    socket.on('data', (bytes) => (console.log(String(bytes)), socket.destroy()));
    socket.on('error', (error) => console.log(error.code));`;
  return output('ip', 'netns', 'exec', NEIGHBOUR.name, process.execPath, '-e', program).trim();
}

/** @param host a namespace that has it as its only way out */
async function makeWorld(host?: string): Promise<ChildProcess> {
  const others = [METADATA, RESOLVER, ...PRIVATE, ALLOWED];
  const steps = others.flatMap((one) => [
    `ip -n ${NAME} addr add ${one}/32 dev lo`,
    `$IP route add ${one}/32 via ${PUBLIC}`,
  ]);
  if (host !== undefined) steps.push('$IP link set lo up', `$IP route add default via ${PUBLIC}`);
  await makePair({ name: NAME, link: LINK, here: HERE, address: PUBLIC }, steps, host);
  // With `ip netns exec` it would keep the disks of other suites mounted.
  const world = spawn('nsenter', [`--net=/run/netns/${NAME}`, process.execPath, '-e', SERVER]);
  expect(await firstOutput(world)).toBe('listens');
  return world;
}

async function removeWorld(world: ChildProcess | undefined): Promise<void> {
  if (world) await kill(world);
  await run('sh', ['-c', REMOVE], driverContext(20_000));
}
