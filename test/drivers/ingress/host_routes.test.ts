// Routes of the host: where its uplinks are, and whether the block of the networks is somebody's already.
import { spawnSync } from 'node:child_process';
import { hostRoutes, overlappingRoute, parseRoutes, uplinksOf } from '../../../drivers/network/host_routes';

const TABLE = `Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
eth0	00000000	010200C0	0003	0	0	0	00000000	0	0	0
plad28367xy	D8A0F70A	00000000	0001	0	0	0	FCFFFFFF	0	0	0
eth0	000200C0	00000000	0001	0	0	0	00FFFFFF	0	0	0
tun0	0000F50A	00000000	0001	0	0	0	0000FFFF	0	0	0
lan1	0000100A	00000000	0001	0	0	0	0000F0FF	0	0	0
`;

test('the default route tells the uplink', () => {
  expect(uplinksOf(parseRoutes(TABLE))).toEqual(['eth0']);
  expect(uplinksOf([])).toEqual([]);
});

test.each([
  ['10.247.0.0/16', null],
  ['10.245.0.0/16', '10.245.0.0/16 over tun0'],
  ['10.245.9.0/24', '10.245.0.0/16 over tun0'],
  ['10.244.0.0/14', '10.245.0.0/16 over tun0'],
  ['10.20.0.0/16', '10.16.0.0/12 over lan1'],
  ['192.0.2.128/28', '192.0.2.0/24 over eth0'],
  ['172.16.0.0/12', null],
])('whether a route leads to addresses of %s: %s', (block, route) => {
  expect(overlappingRoute(parseRoutes(TABLE), block)).toBe(route);
});

const { stdout, status } = spawnSync('ip', ['-4', 'route', 'show', 'default'], { encoding: 'utf8' });
const withRoutes = status === 0 ? test : test.skip;

withRoutes('the kernel and ip tell the same uplinks (needs iproute2)', () => {
  const named = [...stdout.matchAll(/ dev (\S+)/g)].map(([, link]) => link);
  expect(uplinksOf(hostRoutes()).sort()).toEqual([...new Set(named)].sort());
});
