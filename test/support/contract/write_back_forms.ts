// Rows in the forms that differ, for test/support/contract/write_back.ts, and values of fields that can be cleared.
import { deployed } from '../deployments/deployed';
import type { World } from '../world';

export type Values = Record<string, unknown>;

/** A row of the operation's kind in one of its forms. */
export interface Form {
  name: string;
  /** Fields of the body that makes it, beside those of the documented example. */
  body?(world: World): Promise<Values> | Values;
  /** What requests and jobs do afterwards. */
  then?(world: World, id: string): Promise<unknown>;
}

const patch =
  (body: Values) =>
  (place: (id: string) => string): Form['then'] =>
  async (world, id) => {
    const answer = await world.call('PATCH', place(id), { body });
    if (answer.status >= 300) throw new Error(`${place(id)}: ${answer.status} ${answer.text}`);
  };

const record = (type: string, fields: Values): Form => ({ name: type, body: () => ({ type, ...fields }) });
const notifier = (type: string, config: Values): Form => ({ name: type, body: () => ({ type, config }) });

/** Forms of a kind in which other fields count. A kind without a line has the row of the documented example alone. */
export const FORMS: Record<string, Form[]> = {
  application: [
    { name: 'without a source', body: () => ({ source: undefined }) },
    { name: 'of a preset', body: () => ({ source: undefined, preset: 'static-site' }) },
    { name: 'of an image', body: () => ({ source: { type: 'image', image: 'registry.example.com/acme/shop:1.4' } }) },
    {
      name: 'with settings',
      then: patch({
        http: { port: 8080, force_https: false },
        health_check: { type: 'http', path: '/up' },
        previews: { expire_after_days: null },
        log_retention_days: 3,
      })((id) => `/v2/applications/${id}/settings`),
    },
    {
      name: 'with auto-deploy',
      async then(world, id) {
        await patch({ enabled: true, paths: ['src/**'] })((of) => `/v2/applications/${of}/auto_deploy`)?.(world, id);
        await world.service.sql(
          `update auto_deploys set status_reason = 'The repository cannot be read.', failures = 3 where id = $1`,
          [id],
        );
      },
    },
    {
      name: 'of a size that is not offered any more',
      then: (world, id) => world.service.sql(`update applications set application_type = 'gone' where id = $1`, [id]),
    },
  ],
  bucket: [
    {
      name: 'a website',
      body: () => ({ access: 'public_read', website: { index_document: 'index.html' }, quota_gb: null }),
    },
    {
      name: 'locked',
      body: () => ({ versioning: true, object_lock: true, default_retention: { mode: 'governance', days: 3 } }),
    },
  ],
  cdn_zone: [
    {
      name: 'that is served',
      then: (world, id) => world.service.sql(`update cdn_zones set status = 'active' where id = $1`, [id]),
    },
    {
      name: 'before an application',
      body: async (world) => ({ origin: { type: 'application', application_id: await world.id('application') } }),
    },
    {
      name: 'with a cache',
      body: () => ({ cache: { browser_ttl_seconds: 60, query_string: 'ignore' }, enabled: false }),
    },
  ],
  database_endpoint: [
    { name: 'private', body: () => ({ access: 'private', allowed_sources: undefined }) },
    { name: 'pooled', body: () => ({ access: 'private', allowed_sources: undefined, pool_mode: 'session' }) },
  ],
  bucket_access_key: [
    {
      name: 'that has expired',
      then: (world, id) =>
        world.service.sql(
          `update bucket_access_keys set expires_at = now() - interval '1 day', status = 'expired' where id = $1`,
          [id],
        ),
    },
  ],
  dns_record: [
    record('MX', { value: 'mail.example.com', priority: 10 }),
    record('SRV', { name: '_sip._tcp.phone', value: 'sip.example.com', priority: 1, weight: 2, port: 5060 }),
    record('CAA', { value: 'ca.example.com', flags: 0, tag: 'issue' }),
    record('TXT', { value: 'v=spf1 -all', ttl: 300, comment: 'mail' }),
    record('CNAME', { name: 'alias', value: 'www.example.com' }),
  ],
  email_domain: [
    {
      name: 'that is verified',
      then: (world, id) =>
        world.service.sql(`update email_domains set status = 'verified', verified_at = now() where id = $1`, [id]),
    },
  ],
  email_relay_zone: [
    {
      name: 'of a domain that is no longer verified',
      then: (world) =>
        world.service.sql(`update email_domains set status = 'failed' where project_id = $1`, [world.project]),
    },
  ],
  git_integration: [
    {
      name: 'that was granted',
      then: (world, id) => world.service.sql(`update git_integrations set status = 'active' where id = $1`, [id]),
    },
  ],
  notifier: [
    notifier('email', { addresses: ['ops@example.com'] }),
    notifier('slack', { webhook_url: 'https://hooks.example.com/services/T0/B0/secret' }),
    notifier('pagerduty', { routing_key: 'R0123456789abcdef0123456789abcde' }),
    notifier('webhook', { url: 'https://ops.example.com/hooks', events: ['application.created'] }),
  ],
  observer: [
    {
      name: 'with headers',
      body: () => ({
        uptime: { target: 'https://check.invalid/', headers: [{ name: 'X-Token', value: 'a secret' }] },
        reminder_minutes: 30,
      }),
    },
    { name: 'of a port', body: () => ({ uptime: { check: 'tcp', target: 'check.invalid:443' } }) },
    {
      name: 'of a metric',
      body: async (world) => ({
        type: 'metric',
        uptime: undefined,
        metric: {
          resource_type: 'application',
          resource_id: await world.id('application'),
          metric: 'cpu_percent',
          operator: 'gt',
          threshold: 80,
        },
      }),
    },
  ],
  process: [
    {
      name: 'that is deployed, without a command',
      async then(world, id) {
        await world.service.sql(`update processes set command = null where id = $1`, [id]);
        await deployed(world.service, await world.id('application'));
      },
    },
    { name: 'without a command', body: () => ({ command: undefined, application_type: undefined }) },
  ],
  schedule: [{ name: 'with a size', body: () => ({ process_type: 'web', application_type: 's-512mb' }) }],
  shared_repository: [
    {
      name: 'that was verified',
      then: (world, id) => world.service.sql(`update shared_repositories set status = 'active' where id = $1`, [id]),
    },
    { name: 'with a deploy key', body: () => ({ url: `git@git.example.com:acme/shop-${Date.now()}.git` }) },
  ],
  volume: [
    {
      name: 'attached',
      body: async (world) => ({ application_id: await world.id('application'), mount_path: `/data/${Date.now()}` }),
    },
  ],
};

/** Values of fields that can be cleared: those that the schema gives no example of, and what they need beside them. */
export const SETTABLE: Record<string, (world: World) => Promise<Values> | Values> = {
  'updateApplication source': () => ({ source: { type: 'image', image: 'registry.example.com/acme/shop:2' } }),
  'updateApplication source.branch': () => ({ source: { branch: 'other' } }),
  'updateApplicationSettings build.builder': () => ({ build: { builder: 'dockerfile' } }),
  'updateApplicationSettings build.buildpacks': () => ({ build: { buildpacks: ['one'] } }),
  'updateApplicationSettings build.dockerfile_path': () => ({ build: { dockerfile_path: 'docker/Dockerfile' } }),
  'updateApplicationSettings build.root_directory': () => ({ build: { root_directory: 'apps/web' } }),
  'updateApplicationSettings health_check.type': () => ({ health_check: { type: 'none' } }),
  'updateBucket default_retention': () => ({
    versioning: true,
    object_lock: true,
    default_retention: { mode: 'governance', days: 1 },
  }),
  'updateBucket website': () => ({ access: 'public_read', website: { index_document: 'index.html' } }),
  'updateBucketAccessKey expires_at': () => ({ expires_at: new Date(Date.now() + 86_400_000).toISOString() }),
  'updateDatabaseEndpoint pool_mode': () => ({ pool_mode: 'transaction' }),
  'updateDatabaseEndpoint pool_size': () => ({ pool_mode: 'session', pool_size: 5 }),
  'updateNotifier config.secret': () => ({ config: { secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' } }),
  'updateNotifier config.events': () => ({ config: { events: ['application.created'] } }),
  'updateProject description': () => ({ description: 'The web shop' }),
  'updateSchedule process_type': () => ({ process_type: 'web' }),
  'updateVolume application_id': async (world) => ({
    application_id: await world.id('application'),
    mount_path: `/data/${Date.now()}`,
  }),
};
