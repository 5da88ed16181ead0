// A project as customers have one: something of every kind that holds data, each as old as a month, and what visitors
// and clients get of it.
import { Resolver } from 'node:dns/promises';
import { createHash } from 'node:crypto';
import { GetObjectCommand, ListObjectVersionsCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { withConfig } from '../config';
import { connect, openDatabaseWorkshop } from '../databases/database_hall';
import { startDeployService, visitHost, type DeployService } from '../deployments/deploy';
import { freePort } from '../processes/free_port';
import { startRegistryClient } from '../registries/registry_client';
import { waitFor } from '../wait_for';
import { openWorld, type World } from '../world';

/* oxlint-disable typescript/no-explicit-any -- answers of the service */
const SERVER = `const fs = require('fs');
require('http').createServer((asked, answer) => {
  if (asked.url === '/write') fs.writeFileSync('/data/note', 'a file of the customer');
  const file = fs.existsSync('/data/note') ? fs.readFileSync('/data/note', 'utf8') : 'no file';
  answer.end([process.env.GREETING, file, Boolean(process.env.DATABASE_URL)].join(', '));
}).listen(process.env.PORT);`;
const FILES = { 'package.json': '{"scripts":{"start":"node server.js"}}', 'server.js': SERVER };

export interface AttackedProject {
  /** Address of a repository whose application defaces the page. */
  evil: string;
  service: DeployService;
  world: World;
  application: { id: string; host: string };
  database: { id: string };
  zone: { id: string };
  bucket: { id: string; name: string };
  /** Ids of other kinds. */
  others: Record<'email_domain' | 'observer' | 'notifier' | 'cdn_zone', string>;
  /** What is the same again when nothing is lost. */
  state(): Promise<Record<string, unknown>>;
  /** As S3 clients with the key of the project. */
  s3(): S3Client;
  close(): Promise<void>;
}

export async function startAttackedProject(settings: Record<string, string> = {}): Promise<AttackedProject> {
  const place = openDatabaseWorkshop();
  const [dns, s3, registry, smtp] = [await freePort(), await freePort(), await freePort(), await freePort()];
  const service = await startDeployService({
    ...place.settings,
    ...{ DNS_PORT: String(dns), S3_PORT: String(s3), REGISTRY_PORT: String(registry), SMTP_PORTS: String(smtp) },
    ...{ RETENTION_OF_DELETED_DAYS: '7', DESTROYING_CALLS_PER_MINUTE: '10000', RATE_LIMIT: '1000000' },
    ...withConfig({ dnsRoots: ['127.0.0.1:1'], databaseDir: place.databaseDir }),
    ...settings,
  });
  const world = openWorld(service);
  const make = async (path: string, body: object): Promise<any> => {
    const made = await service.call('POST', path, { body });
    if (made.status >= 300) throw new Error(`${path} ${made.text}`);
    return made.body;
  };
  const app = await service.application(FILES);
  await service.call('PUT', `/v2/applications/${app.id}/env/GREETING`, { body: { value: 'hello' } });
  await app.post('/schedules', { name: 'nightly', cron: '0 3 * * *', command: 'true' });
  service.git.makeRepository('evil', { ...FILES, 'server.js': SERVER.replace('process.env.GREETING', "'defaced'") });
  const evil = service.git.url('evil');
  const volume = await make('/v2/volumes', { name: 'files', size_gb: 1 });
  await service.settle(`/v2/volumes/${volume.id}`);
  const attach = { application_id: app.id, mount_path: '/data' };
  await service.call('PATCH', `/v2/volumes/${volume.id}`, { body: attach });
  const database = await make('/v2/databases', { name: 'main', engine: 'postgresql' });
  const databasePath = `/v2/databases/${database.id}`;
  await waitFor(
    'the database',
    async () => (await service.call('GET', databasePath)).body.status === 'available',
    90_000,
  );
  const address = async (): Promise<string> =>
    (await service.call('GET', `${databasePath}/credentials`)).body.endpoints[0].connection_string;
  await connect(await address(), async (client) => {
    await client.query('create table notes (id int primary key, body text)');
    await client.query('insert into notes select n, md5(n::text) from generate_series(1, 1000) n');
  });
  await make(`${databasePath}/attachments`, { application_id: app.id });
  await app.deploy();
  await app.visit('/write');
  const bucket = await make('/v2/buckets', { name: `photos-${app.host.split('.')[0]}`, versioning: true });
  const key = await make('/v2/bucket_access_keys', {
    name: 'shop',
    grants: [{ bucket_id: bucket.id, permission: 'full' }],
  });
  const client = new S3Client({
    ...{ endpoint: `http://127.0.0.1:${s3}`, region: 'eu-central-1', forcePathStyle: true },
    credentials: { accessKeyId: key.access_key_id, secretAccessKey: key.secret_access_key },
  });
  for (const name of ['one', 'two'])
    await client.send(new PutObjectCommand({ Bucket: bucket.name, Key: name, Body: `picture ${name}` }));
  const zone = await make('/v2/dns_zones', { name: 'customer.example' });
  const records = [
    { type: 'A', name: 'www', value: '192.0.2.7', ttl: 120, comment: 'front' },
    { type: 'MX', value: 'mail.example.net', priority: 10 },
    { type: 'TXT', name: 'proof', value: 'a=1' },
  ];
  for (const record of records) await make(`/v2/dns_zones/${zone.id}/records`, record);
  await service.sql(`update dns_zones set status = 'active', generation = generation + 1, next_at = now()`);
  const images = await make('/v2/registries', { name: `images${app.host.split('.')[0]}` });
  await service.settle(`/v2/registries/${images.id}`);
  const robot = await make('/v2/robot_accounts', { name: 'pusher', permissions: ['pull', 'push'] });
  const docker = startRegistryClient({ port: registry, username: robot.username, password: robot.secret });
  await docker.pushImage(`${images.name}/shop`, '1', [Buffer.alloc(50_000, 7)]);
  await make(`/v2/applications/${app.id}/domains`, { hostname: 'shop.example.com' });
  const cdn = await make('/v2/cdn_zones', { name: 'assets', origin: { type: 'application', application_id: app.id } });
  const others = {
    ...{ email_domain: await world.fresh('email_domain'), observer: await world.fresh('observer') },
    ...{ notifier: await world.fresh('notifier'), cdn_zone: cdn.id as string },
  };
  const paths = [
    ...[`/v2/applications/${app.id}`, databasePath, `/v2/volumes/${volume.id}`, `/v2/buckets/${bucket.id}`],
    ...[`/v2/dns_zones/${zone.id}`, `/v2/registries/${images.id}`, `/v2/cdn_zones/${cdn.id}`],
    ...[`/v2/email_domains/${others.email_domain}`, `/v2/observers/${others.observer}`],
    ...[`/v2/notifiers/${others.notifier}`, `/v2/bucket_access_keys/${key.id}`, `/v2/robot_accounts/${robot.id}`],
    ...[`/v2/projects/${service.project}`, `/v2/applications/${app.id}/settings`],
    `/v2/applications/${app.id}/auto_deploy`,
  ];
  const lists = [
    ...[`/v2/applications/${app.id}/env`, `/v2/applications/${app.id}/processes`, `/v2/dns_zones/${zone.id}/records`],
    ...[`/v2/applications/${app.id}/domains`, `/v2/applications/${app.id}/schedules`],
    ...[`${databasePath}/endpoints`, `${databasePath}/users`, `${databasePath}/attachments`],
  ];
  for (const table of AGED) await service.sql(`update ${table} set created_at = created_at - interval '30 days'`);
  await service.sql(`update members set owner_since = now() - interval '30 days'`);
  const resolver = new Resolver({ timeout: 2_000, tries: 1 });
  resolver.setServers([`127.0.0.1:${dns}`]);
  const ask = (name: string, type: string): Promise<unknown> => resolver.resolve(name, type).catch((e) => e.code);
  const objectOf = async (name: string): Promise<string> =>
    client.send(new GetObjectCommand({ Bucket: bucket.name, Key: name })).then(
      async ({ Body }) => (await Body?.transformToString()) ?? '',
      (error: Error) => error.name,
    );
  const rows = async (): Promise<string> => {
    let text = '';
    await connect(await address(), async (one) => {
      text = JSON.stringify((await one.query('select * from notes order by id')).rows);
    }).catch((error: Error) => void (text = error.message));
    return createHash('sha256').update(text).digest('hex');
  };
  return {
    ...{ evil, service, world, application: app, database, zone, bucket, others, s3: () => client },
    async state() {
      const shown: Record<string, unknown> = {};
      for (const path of paths) shown[path] = lasting((await service.call('GET', path)).body, path);
      for (const path of lists)
        shown[path] = ((await service.call('GET', path)).body.data ?? []).map((row: any) => lasting(row)).sort(byText);
      const versions = await client.send(new ListObjectVersionsCommand({ Bucket: bucket.name })).then(
        ({ Versions = [] }) => Versions.length,
        (error: Error) => error.name,
      );
      return {
        ...shown,
        page: (await visitHost(service.platform.config.ingressPort, app.host)).body,
        address: await address().catch(() => 'none'),
        rows: await rows(),
        objects: [await objectOf('one'), await objectOf('two'), versions],
        dns: [await ask('www.customer.example', 'A'), await ask('customer.example', 'MX')],
        image: (await docker.pull(`${images.name}/shop`, '1')).headers.get('docker-content-digest'),
      };
    },
    async close() {
      client.destroy();
      await service.sql('update deleted_resources set purge_from = now()');
      for (const id of [cdn.id, app.id, database.id]) await service.call('DELETE', pathOf(paths, id));
      const { data } = (await service.call('GET', `/v2/projects/${service.project}/bin?limit=100`)).body;
      await service.sql('update deleted_resources set purge_from = now()');
      for (const { id } of data) await service.call('DELETE', `/v2/bin/${id}`);
      await service.close();
      place.clear();
    },
  };
}

const AGED = [
  ...['applications', 'databases', 'volumes', 'buckets', 'dns_zones', 'cdn_zones', 'email_domains', 'observers'],
  ...['notifiers', 'registries', 'bucket_access_keys', 'robot_accounts', 'database_backups'],
];

/** What nobody looks at, or what changes by itself. */
const PASSING =
  /^(updated_at|.*_checked_at|next_run_at|checked_at|last_.*|observed_.*|status_reason|point_in_time_window|size_bytes|storage_used.*|next_check_at|uptime.*|started_at|serial|record_count|version|created_at|days|metrics|certificate|delegation|active_deployment.*|dns_records|used_bytes|open_incident_id)$/;

function lasting(row: any, path = ''): unknown {
  if (Array.isArray(row)) return row.map((one) => lasting(one));
  if (row === null || typeof row !== 'object') return row;
  return Object.fromEntries(
    Object.entries(row)
      .filter(([name]) => !PASSING.test(name) && !(name === 'status' && path.includes('/observers/')))
      .filter(([name]) => !(name === 'id' && typeof row.hostname === 'string' && 'dns_records' in row))
      .map(([name, value]) => [name, lasting(value)]),
  );
}

const pathOf = (paths: readonly string[], id: string): string => paths.find((path) => path.endsWith(id)) as string;
const byText = (a: unknown, b: unknown): number => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1);
