// Distinguishes failing targets from a failure of our network. Where checks of many hosts fail at once, the platform's
// network may be down: no alert is sent before reference hosts have been probed.
import { connect } from 'node:net';
import { parseHostPort } from '../../core/protocols/addresses';

export interface NetworkGuard {
  /** Notes an attempt on a host. `isUnreachable`: nothing of it was heard. */
  note(host: string, isUnreachable: boolean): void;
  /** Whether failures to reach a host may be ours: they are not to be counted. */
  isSuspended(): Promise<boolean>;
}

interface GuardOptions {
  /** host:port; where one answers, the network works. */
  references: readonly { host: string; port: number }[];
  now?: () => number;
}

/** CHECK_REFERENCES. */
export function referencesOf(text: string | null): { host: string; port: number }[] {
  return (text ?? '').split(',').flatMap((entry) => parseHostPort(entry.trim()) ?? []);
}

const WINDOW_MS = 30_000;
/** Fewer hosts prove nothing: they may share a machine. */
const HOSTS_MIN = 5;
const SHARE = 0.5;
/** Without a reference the suspicion ends by itself: then the failures count. */
const UNPROVEN_MS = 5 * 60_000;
const PROBE_MS = 5_000;
const CONNECT_MS = 2_000;

export function openNetworkGuard({ references, now = Date.now }: GuardOptions): NetworkGuard {
  const hosts = new Map<string, { at: number; isUnreachable: boolean }>();
  let suspectedSince: number | null = null;
  let probe = { at: -Infinity, works: true };
  return {
    note(host, isUnreachable) {
      hosts.delete(host);
      hosts.set(host, { at: now(), isUnreachable });
    },
    async isSuspended() {
      const at = now();
      for (const [host, last] of hosts) if (last.at < at - WINDOW_MS) hosts.delete(host);
      const lost = [...hosts.values()].filter(({ isUnreachable }) => isUnreachable).length;
      if (lost < HOSTS_MIN || lost < hosts.size * SHARE) {
        suspectedSince = null;
        return false;
      }
      suspectedSince ??= at;
      if (!references.length) return at - suspectedSince < UNPROVEN_MS;
      if (at - probe.at >= PROBE_MS) probe = { at, works: (await Promise.all(references.map(answers))).includes(true) };
      return !probe.works;
    },
  };
}

function answers({ host, port }: { host: string; port: number }): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: CONNECT_MS });
    const end = (works: boolean) => (): void => {
      socket.destroy();
      resolve(works);
    };
    socket.once('connect', end(true));
    socket.once('error', end(false));
    socket.once('timeout', end(false));
  });
}
