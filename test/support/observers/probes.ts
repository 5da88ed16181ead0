// Probes as tests play them: with keys of their own, over the two requests of probes.
import type { LeasedCheck, ResultsAnswer } from '../../../core/outbound/probe_protocol';
import { createProbe } from '../../../models/observers/probe';
import { claimChecks } from '../../../models/observers/observer/claim';
import { applyFindings } from '../../../models/observers/observer/results';
import { observersOf } from './observers';
import type { TestService } from '../service';

interface Posted<Body> {
  status: number;
  body: Body;
}

export interface Probes {
  tokenOf(name: string): string;
  /** A probe with the key of its name, in the region before `-two`. Answers its id. */
  add(name: string): Promise<string>;
  post<Body>(place: string, body: unknown, token?: string): Promise<Posted<Body>>;
  ask(name: string, more?: object): Promise<Posted<{ region: string; checks: LeasedCheck[] }>>;
  send(name: string, results: unknown): Promise<Posted<ResultsAnswer>>;
  /** Makes these checks due in the region of a probe, and no others. */
  makeDue(name: string, ids: readonly string[]): Promise<void>;
  /** Takes the check of an observer. */
  lease(name: string, observer: string): Promise<LeasedCheck>;
  /** Takes it, and reports this. */
  found(name: string, observer: string, outcome: object): Promise<ResultsAnswer>;
  /** What a worker of the installation finds. */
  foundHere(observer: string, outcome: object): Promise<void>;
  /** An observer that is checked from these regions. */
  made(regions: string[], changes?: object): Promise<string>;
}

export const passed = (more: object = {}): object => ({
  ...{ status: 'pass', response_time_ms: 12.5, status_code: 200, error: null, certificate_expires_at: null },
  ...{ timings: { dns_ms: 1, connect_ms: 2, tls_ms: null, first_byte_ms: 9 }, unreachable: false },
  ...more,
});
export const failed = (more: object = {}): object =>
  passed({ status: 'fail', response_time_ms: null, status_code: null, error: 'It was refused.', ...more });

const regionOf = (name: string): string => name.replace('-two', '');

export function probesOf(service: TestService): Probes {
  const tokens = new Map<string, string>();
  const { database } = service.platform;
  const post: Probes['post'] = async <Body>(place: string, body: unknown, token?: string): Promise<Posted<Body>> => {
    const answer = await fetch(`${service.url}/probe/${place}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...(token && { Authorization: `Bearer ${token}` }) },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
    return { status: answer.status, body: (await answer.json()) as Body };
  };
  const probes: Probes = {
    post,
    tokenOf: (name) => tokens.get(name) as string,
    async add(name) {
      const { probe, token } = await createProbe(database, { region: regionOf(name), name });
      tokens.set(name, token);
      return probe.id;
    },
    ask: (name, more) =>
      post('checks', { limit: 250, kinds: ['http', 'tcp', 'ping'], suspended: false, ...more }, tokens.get(name)),
    send: (name, results) => post('results', { results }, tokens.get(name)),
    async makeDue(name, ids) {
      const due = 'now() - make_interval(secs => 1)';
      const later = `case when observer_id = any($1) then ${due} else now() + interval '1 hour' end`;
      await service.sql(`update observer_checks set check_at = ${later} where region = $2`, [ids, regionOf(name)]);
    },
    async lease(name, observer) {
      await probes.makeDue(name, [observer]);
      const { body } = await probes.ask(name);
      expect(body.checks).toHaveLength(1);
      return body.checks[0] as LeasedCheck;
    },
    async found(name, observer, outcome) {
      const { id } = await probes.lease(name, observer);
      return (await probes.send(name, [{ id, age_ms: 5, outcome }])).body;
    },
    async foundHere(observer_id, outcome) {
      await probes.makeDue('local', [observer_id]);
      const [claimed] = await claimChecks(database, 'local', 1);
      const fence = claimed?.fence as number;
      const finding = { observer_id, region: 'local', fence, checked_at: new Date(), outcome: outcome as never };
      await database.transaction((session) => applyFindings(session, [finding]));
    },
    made: async (regions, changes) => {
      const fields = { failure_threshold: 1, uptime: { regions }, ...changes };
      return (await observersOf(service).made('https://shop.example.com/', fields)).id;
    },
  };
  return probes;
}
