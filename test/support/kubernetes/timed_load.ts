// Visitors of an application who count: each has a connection that is kept, or one for each request.
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

interface TimedVisit {
  /** ms of `performance.now()` when it was sent. */
  at: number;
  ms: number;
  /** 200, or what came instead, with the reason of the ingress where it has answered itself. */
  outcome: string;
}

interface TimedLoad {
  /** So far, in the order of their ends. */
  readonly visits: readonly TimedVisit[];
  stop(): Promise<readonly TimedVisit[]>;
}

const LANES = 8;
const PAUSE_MS = 10;
const TIMEOUT_MS = 60_000;

/** GET / until stopped. */
export function startTimedLoad(port: number, host: string): TimedLoad {
  const visits: TimedVisit[] = [];
  let isStopped = false;
  const lane = async (agent: http.Agent | false): Promise<void> => {
    while (!isStopped) {
      const at = performance.now();
      const outcome = await visit(port, host, agent).catch((error: Error) => error.message);
      visits.push({ at, ms: performance.now() - at, outcome });
      await sleep(PAUSE_MS);
    }
    if (agent) agent.destroy();
  };
  const lanes = Array.from({ length: LANES }, (_, index) =>
    lane(index % 2 ? new http.Agent({ keepAlive: true, maxSockets: 1 }) : false),
  );
  return {
    visits,
    async stop() {
      isStopped = true;
      await Promise.all(lanes);
      return visits;
    },
  };
}

/** Those that were not answered with 200. */
export function lostOf(visits: readonly TimedVisit[]): TimedVisit[] {
  return visits.filter(({ outcome }) => outcome !== '200');
}

function visit(port: number, host: string, agent: http.Agent | false): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, headers: { host }, agent, timeout: TIMEOUT_MS };
    const request = http.get(options, (response) => {
      let body = '';
      response.on('data', (bytes: Buffer) => (body += bytes.toString()));
      response.on('end', () => {
        const reason = response.statusCode === 200 ? null : /"code":"(\w+)"/.exec(body)?.[1];
        resolve(reason ? `${response.statusCode} ${reason}` : String(response.statusCode));
      });
      response.on('error', reject);
    });
    request.on('timeout', () => request.destroy(new Error('timeout')));
    request.on('error', reject);
  });
}
