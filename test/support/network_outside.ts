// What a project reaches of the world behind this host: a network namespace stands for it, with a public address, a
// metadata service, private addresses and a resolver.
import { spawn, type ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { driverContext } from '../../drivers/driver';
import { run } from '../../drivers/command';
import { openNetworkTrial, output, type NetworkTrial } from './network_trial';
import { firstOutput, kill } from './processes';

/** Once the anycast address of relays, today nobody's. */
const PUBLIC = '192.88.99.2';
const HERE = '192.88.99.1';
const METADATA = '169.254.169.254';
const RESOLVER = '10.98.76.53';
const PRIVATE = ['10.98.76.54', '172.20.9.9', '192.168.77.7', '100.64.9.9'];
const ALLOWED = '10.98.77.1';
const PORT = 7777;
const NAME = `platform-test-${process.pid}`;
const LINK = `out${process.pid}`;
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

const REMOVE = [NAME, NEIGHBOUR.name, LINK, NEIGHBOUR.link]
  .map((one, index) => `ip ${index < 2 ? 'netns' : 'link'} del ${one} 2>/dev/null`)
  .concat(':')
  .join('; ');

const ASK = `
const { Resolver } = require("node:dns").promises, resolver = new Resolver({ timeout: 5000 });
resolver.setServers(["${RESOLVER}"]);
resolver.resolve4("name.example").then(console.log, (error) => console.log(error.code));`;

export function networkOutsideCases(): void {
  let world: ChildProcess;
  let one: NetworkTrial;
  let before: string;
  beforeAll(async () => {
    world = await makeWorld();
    await makeNeighbour();
    before = fromNeighbour();
    one = await openNetworkTrial({ resolvers: [RESOLVER], allowed: ['10.98.77.0/24'] });
  }, 60_000);
  afterAll(async () => {
    await one?.close();
    await kill(world);
    await run('sh', ['-c', `${REMOVE}`], driverContext(20_000));
  }, 60_000);

  const at = (address: string, port = PORT): string => `${address}:${port}`;
  const targets = [at(PUBLIC), at(METADATA, 80), at(RESOLVER), at(RESOLVER, 53), ...PRIVATE.map((one) => at(one))];

  test('a project reaches public addresses, allowed ones and its resolver, and no others', async () => {
    const all = [...targets, at(ALLOWED)];
    // This host reaches all of them.
    expect(await one.reach('ins_host', undefined, all)).toEqual(Object.fromEntries(all.map((one) => [one, 'outside'])));
    expect(await one.reach('ins_out', 'prj_out', all)).toEqual({
      ...Object.fromEntries(targets.map((one) => [one, 'ECONNREFUSED'])),
      [at(PUBLIC)]: 'outside',
      [at(ALLOWED)]: 'outside',
      [at(RESOLVER, 53)]: 'outside',
    });
  });

  test('the host does not forward for others because of it', async () => {
    expect(before).toBe('outside');
    const forwards = readFileSync('/proc/sys/net/ipv4/ip_forward', 'utf8').trim() === '1';
    expect(fromNeighbour()).toBe(forwards ? 'outside' : 'nothing');
    expect(await one.reach('ins_still', 'prj_out', [at(PUBLIC)])).toEqual({ [at(PUBLIC)]: 'outside' });
  });

  test('names are resolved through it', async () => {
    expect(await one.shell('ins_names', 'prj_out', `exec node -e '${ASK}'`)).toEqual(["[ '10.11.12.13' ]"]);
  });
}

// While nothing forbids it, a host that forwards is a router for its neighbours.
async function makeNeighbour(): Promise<void> {
  const { name, link, here, address } = NEIGHBOUR;
  const script = [
    'set -e',
    `ip netns add ${name}`,
    `ip link add ${link} type veth peer name eth0 netns ${name}`,
    `echo 1 > /proc/sys/net/ipv4/conf/${link}/forwarding`,
    `ip addr add ${here}/24 dev ${link}`,
    `ip link set ${link} up`,
    `ip -n ${name} addr add ${address}/24 dev eth0`,
    `ip -n ${name} link set eth0 up`,
    `ip -n ${name} route add default via ${here}`,
    `ip -n ${NAME} route add ${address}/32 via ${HERE}`,
    // The last of the default routes: nothing uses it.
    `ip route add default via ${address} dev ${link} metric 4000000000`,
  ];
  await run('sh', ['-c', script.join('\n')], driverContext(20_000));
}

/** What it gets from the world through the host. */
function fromNeighbour(): string {
  const program = `const socket = require('net').connect(${PORT}, '${PUBLIC}');
    socket.setTimeout(3000, () => (console.log('nothing'), socket.destroy()));
    socket.on('data', (bytes) => (console.log(String(bytes)), socket.destroy()));
    socket.on('error', (error) => console.log(error.code));`;
  return output('ip', 'netns', 'exec', NEIGHBOUR.name, process.execPath, '-e', program).trim();
}

async function makeWorld(): Promise<ChildProcess> {
  const others = [METADATA, RESOLVER, ...PRIVATE, ALLOWED];
  const script = [
    'set -e',
    `ip netns add ${NAME}`,
    `ip link add ${LINK} type veth peer name eth0 netns ${NAME}`,
    `echo 1 > /proc/sys/net/ipv4/conf/${LINK}/forwarding`,
    `ip addr add ${HERE}/24 dev ${LINK}`,
    `ip link set ${LINK} up`,
    `ip -n ${NAME} link set lo up`,
    `ip -n ${NAME} addr add ${PUBLIC}/24 dev eth0`,
    `ip -n ${NAME} link set eth0 up`,
    ...others.flatMap((one) => [`ip -n ${NAME} addr add ${one}/32 dev lo`, `ip route add ${one}/32 via ${PUBLIC}`]),
  ];
  await run('sh', ['-c', script.join('\n')], driverContext(20_000));
  const world = spawn('ip', ['netns', 'exec', NAME, process.execPath, '-e', SERVER]);
  expect(await firstOutput(world)).toBe('listens');
  return world;
}
