// Failed logins of mail clients: responses are increasingly delayed, and after several failures a client is locked out.
// A password has 256 random bits, so guessing is hopeless; the purpose is to limit load. A client with the right
// password of another zone is not affected by failures from the same address, such as another application of the host.
import ipaddr from 'ipaddr.js';
import { SmtpReply } from '../../../engines/mail';

interface LoginFailures {
  /** @throws SmtpReply for a user name that an address has tried too often */
  requireFew(address: string, username: string): void;
  /** Counts a wrong password, and waits. @throws SmtpReply for an address that has sent too many, of whatever name */
  count(address: string, username: string): Promise<void>;
}

const PER_USER = 10;
const PER_ADDRESS = 50;
const WITHIN_MS = 15 * 60_000;
const DELAY_MS = 250;
const COUNTED_MAX = 50_000;
const USER_NAME_CHARACTERS = 64;
const IPV6_NETWORK_BITS = 64;

export function openLoginFailures(now: () => number = Date.now): LoginFailures {
  const counts = new Map<string, { count: number; until: number }>();
  const countOf = (key: string): number => {
    const found = counts.get(key);
    return found && found.until > now() ? found.count : 0;
  };
  const add = (key: string): number => {
    if (counts.size > COUNTED_MAX) counts.clear();
    const count = countOf(key) + 1;
    counts.set(key, { count, until: now() + WITHIN_MS });
    return count;
  };
  const userKey = (address: string, username: string): string =>
    `${networkOf(address)} ${username.slice(0, USER_NAME_CHARACTERS)}`;
  return {
    requireFew(address, username) {
      if (countOf(userKey(address, username)) >= PER_USER) throw lockedOut();
    },
    async count(address, username) {
      const ofUser = add(userKey(address, username));
      if (add(networkOf(address)) > PER_ADDRESS) throw lockedOut();
      await new Promise((resolve) => setTimeout(resolve, DELAY_MS * Math.min(ofUser, PER_USER)).unref());
    },
  };
}

/** IPv6 clients are grouped by their network. */
function networkOf(address: string): string {
  if (!ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  if (parsed.kind() === 'ipv4') return parsed.toString();
  return ipaddr.IPv6.networkAddressFromCIDR(`${parsed.toString()}/${IPV6_NETWORK_BITS}`).toString();
}

function lockedOut(): SmtpReply {
  return new SmtpReply(454, '4.7.0', 'Too many failed logins. Try again in a quarter of an hour.');
}
