// Logs of servers in pods: those of one server are one log, of one pod after the other. A position is the uid of a pod
// and a position in its log.
import type { KubernetesClient } from '../../kubernetes/client/client';
import { openPodLogs, logSourceOf } from '../../workload/kubernetes/pod_logs';
import type { LogChunk } from '../../runtime';
import type { ServerPod } from './server_pods';

export interface ServerLogs {
  /** Follows the log of the pod from now on. Repeatable. */
  follow(serverId: string, server: Pick<ServerPod, 'pod'>): void;
  read(serverId: string, position: string | null): Promise<LogChunk>;
  close(): void;
}

const NOTHING: LogChunk = { lines: [], position: '', more: false };

export function openServerLogs(client: KubernetesClient): ServerLogs {
  const logs = openPodLogs(client);
  /** Uids of pods by server, in order. */
  const podsOf = new Map<string, string[]>();
  const keyOf = (uid: string): string => `database.${uid}`;
  return {
    follow(serverId, { pod }) {
      const source = pod && logSourceOf(pod);
      const known = podsOf.get(serverId) ?? [];
      const last = known.at(-1);
      if (last !== undefined && last !== pod?.metadata?.uid) logs.ended(last);
      if (!source || known.includes(source.uid)) return;
      logs.open({ ...source, key: keyOf(source.uid) });
      podsOf.set(serverId, [...known, source.uid]);
    },
    async read(serverId, position) {
      const known = podsOf.get(serverId) ?? [];
      const [uid = '', inner = ''] = splitAtFirst(position ?? '');
      const current = known.includes(uid) ? uid : known[0];
      if (current === undefined) return { ...NOTHING, position: position ?? '' };
      const chunk = await logs.readLog(keyOf(current), current === uid ? inner : null);
      const next = known[known.indexOf(current) + 1];
      // Its successor runs, so it prints no more.
      if (chunk.lines.length === 0 && !chunk.more && next !== undefined) {
        podsOf.set(serverId, known.slice(known.indexOf(next)));
        return { lines: [], position: `${next} `, more: true };
      }
      return { ...chunk, position: `${current} ${chunk.position}` };
    },
    close: () => logs.close(),
  };
}

function splitAtFirst(position: string): [string, string] {
  const at = position.indexOf(' ');
  return at < 0 ? [position, ''] : [position.slice(0, at), position.slice(at + 1)];
}
