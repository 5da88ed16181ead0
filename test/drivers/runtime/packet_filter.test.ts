// Chains of others that would drop what comes from networks of projects, as nft(8) and iptables(8) list them.
import { closedIn, closedOlder } from '../../../drivers/network/packet_filter';

const chain = (family: string, table: string, name: string, rest: object = {}): object => ({
  chain: { family, table, name, handle: 1, ...rest },
});
const found = (...chains: object[]): string | null =>
  closedIn(JSON.stringify({ nftables: [{ metainfo: { version: '1.0.6' } }, ...chains] }));

test('a chain that drops by its policy, of what is forwarded or comes in', () => {
  const base = (hook: string, policy: string): object => ({ type: 'filter', hook, prio: 0, policy });
  expect(found()).toBeNull();
  expect(found(chain('ip', 'filter', 'DOCKER'), chain('ip', 'filter', 'FORWARD', base('forward', 'drop')))).toBe(
    'ip filter FORWARD',
  );
  expect(found(chain('inet', 'own', 'in', base('input', 'drop')))).toBe('inet own in');
  expect(found(chain('ip', 'filter', 'FORWARD', base('forward', 'accept')))).toBeNull();
  expect(found(chain('ip', 'filter', 'OUTPUT', base('output', 'drop')))).toBeNull();
  expect(found(chain('ip6', 'filter', 'FORWARD', base('forward', 'drop')))).toBeNull();
  expect(found(chain('inet', 'firewalld', 'filter_FORWARD', base('forward', 'accept')))).toBe(
    'inet firewalld filter_FORWARD',
  );
  expect(found(chain('inet', 'platform_0a1b2c', 'forward', base('forward', 'drop')))).toBeNull();
});

test('the policy of iptables before nftables', () => {
  expect(closedOlder('-P INPUT ACCEPT\n-P FORWARD DROP\n-P OUTPUT ACCEPT\n-N DOCKER\n')).toBe('iptables FORWARD');
  expect(closedOlder('-P INPUT ACCEPT\n-P FORWARD ACCEPT\n-P OUTPUT DROP\n')).toBeNull();
});
