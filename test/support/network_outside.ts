// What a project reaches of the world behind this host: a network namespace stands for it, with a public address, a
// metadata service, private addresses and a resolver.
import { spawn, type ChildProcess } from 'node:child_process';
import { driverContext } from '../../drivers/driver';
import { run } from '../../drivers/command';
import { openNetworkTrial, type NetworkTrial } from './network_trial';
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
const LINK = `plt${process.pid}`;

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

const ASK = `
const { Resolver } = require("node:dns").promises, resolver = new Resolver({ timeout: 5000 });
resolver.setServers(["${RESOLVER}"]);
resolver.resolve4("name.example").then(console.log, (error) => console.log(error.code));`;

export function networkOutsideCases(): void {
  let world: ChildProcess;
  let one: NetworkTrial;
  beforeAll(async () => {
    world = await makeWorld();
    one = await openNetworkTrial({ resolvers: [RESOLVER], allowed: ['10.98.77.0/24'] });
  }, 60_000);
  afterAll(async () => {
    await one?.close();
    await kill(world);
    await run('sh', ['-c', `ip netns del ${NAME}; ip link del ${LINK} 2>/dev/null || :`], driverContext(20_000));
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

  test('names are resolved through it', async () => {
    expect(await one.shell('ins_names', 'prj_out', `exec node -e '${ASK}'`)).toEqual(["[ '10.11.12.13' ]"]);
  });
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
